/**
 * Tests the analysis of canaries under load: the operator rolls a failing canary back and promotes a working
 * canary, and no stream is interrupted.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../support/cluster/deployed.ts";
import { mist, World } from "../support/cluster/world.ts";
import { eventually } from "../support/eventually.ts";

const name = "canary";
const world = new World(inject("cluster"), "canary");
const deployed = new Deployed(world, name);
/** The highest rate, so that sockets buffer little audio that the client has not read. */
const samplingRate = 44_100;
const text = "Every one of these words is heard to its end, whatever happens to the pod that speaks it.";
const body = { text, speaker: "alan", modelId: "mist", samplingRate };

const analysis = { intervalSeconds: 2, minRequests: 10, maxErrorPercent: 5 };
const rollout = {
  progressDeadlineSeconds: 600,
  canary: {
    steps: [
      { weight: 30, pauseSeconds: 3 },
      { weight: 60, pauseSeconds: 3 },
    ],
    analysis,
  },
};
const canaried = (more: object = {}) => mist({ replicas: 2, rollout, ...more });
const phase = async () => (await deployed.pool("mist"))?.status?.canary?.phase as string | undefined;

beforeAll(() => world.openWith(name, { models: [canaried()] }));
afterAll(() => world.close());

describe("a canary under load", () => {
  /** A program in place of the model: the container becomes ready, and fails every request. */
  const broken = {
    podTemplate: {
      spec: {
        containers: [
          {
            name: "mist",
            command: [
              "node",
              "-e",
              `require("node:http").createServer((q, a) => q.method === "POST" ? a.writeHead(500).end() : a.end("pong")).listen(8080); process.on("SIGTERM", () => process.exit())`,
            ],
            args: [],
          },
        ],
      },
    },
  };
  const canaryGone = () =>
    eventually(
      "the canary's pods to be deleted",
      async () => (await deployed.pods("mist-canary")).length === 0,
    );

  it("is rolled back if its streams fail, and every request succeeds", async () => {
    const before = await deployed.pods("mist");
    await deployed.uncut("bad canary", body, async () => {
      await deployed.setModels(canaried(broken));
      await eventually("the rollback of the canary", async () => (await phase()) === "RolledBack", {
        seen: async () => (await deployed.pool("mist"))?.status,
      });
    });
    const found = await world.condition(name, "RolloutHealthy", "False");
    expect(found).toMatchObject({
      reason: "CanaryErrors",
      message: expect.stringContaining("streams failed"),
    });
    expect(await deployed.pods("mist")).toEqual(before);
    await canaryGone();
  });

  it("is promoted if its metrics are within the limits", async () => {
    const before = await deployed.pods("mist");
    await deployed.uncut("good canary", body, async () => {
      await deployed.setModels(canaried({ env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] }));
      await eventually("the analysis or the promotion of the canary", async () =>
        ["Analysing", "Promoting"].includes((await phase()) ?? ""),
      );
      await deployed.renewed("mist", before, 2);
    });
    await world.condition(name, "Ready", "True");
    await canaryGone();
  });
});
