/** Nothing that rolls, drains or scales cuts a stream; a canary is judged under load; a rollout ends where every GPU is taken. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../support/deployed.ts";
import { eventually } from "../support/eventually.ts";
import { Kubectl, run } from "../support/real-cluster.ts";
import { arcana, mist, World } from "../support/world.ts";

const name = "roll";
const world = new World(inject("cluster"), "rollout");
const { kubectl } = world;
const deployed = new Deployed(world, name);
/** At the highest rate, so that sockets hold little of what a listener has not heard. */
const samplingRate = 44_100;
const text = "Every one of these words is heard to its end, whatever happens to the pod that speaks it.";
const body = { text, speaker: "alan", modelId: "mist", samplingRate };

beforeAll(() => world.openWith(name, { models: [mist({ replicas: 2 })] }));
afterAll(() => world.close());

describe("under 16 streams nothing is cut or fails", () => {
  it("while a pool is rolled", async () => {
    const before = await deployed.pods("mist");
    await deployed.uncut("rolling update", body, async () => {
      const restart = `tts.svc.dev/restart=${Date.now()}`;
      await kubectl.do("annotate", "ttsmp", `${name}-mist`, "--overwrite", restart);
      await deployed.renewed("mist", before, 2);
    });
  });

  it("while the node is drained of its pods, one after the other, as its budget lets them", async () => {
    const before = await deployed.pods("mist");
    await deployed.uncut("drain", body, async () => {
      for (const pod of before) {
        const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod } };
        const path = `/api/v1/namespaces/${kubectl.namespace}/pods/${pod}/eviction`;
        await eventually(`the eviction of ${pod}`, async () => {
          const ran = await run("kubectl", ["create", "--raw", path, "-f", "-"], JSON.stringify(eviction));
          if (ran.code !== 0 && !ran.stderr.includes("disruption budget")) throw new Error(ran.stderr);
          return ran.code === 0;
        });
      }
      await deployed.renewed("mist", before, 2);
    });
  });

  it("while a pool is scaled down", async () => {
    await deployed.uncut("scale-down", body, async () => {
      await deployed.setModels(mist({ replicas: 1 }));
      await eventually("one pod", async () => (await deployed.everyPod("mist")).length === 1);
    });
    await deployed.setModels(mist({ replicas: 2 }));
    await world.condition(name, "Ready", "True");
  });
});

describe("a canary under load", () => {
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
  /** Ready, and fails whatever it is asked. */
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
    eventually("its pods to be gone", async () => (await deployed.pods("mist-canary")).length === 0);

  it("that is bad is rolled back, and no caller hears of it", async () => {
    await deployed.setModels(canaried());
    await world.condition(name, "Ready", "True");
    const before = await deployed.pods("mist");
    await deployed.uncut("bad canary", body, async () => {
      await deployed.setModels(canaried(broken));
      await eventually("its end", async () => (await phase()) === "RolledBack", {
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

  it("that is good is promoted", async () => {
    const before = await deployed.pods("mist");
    await deployed.uncut("good canary", body, async () => {
      await deployed.setModels(canaried({ env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] }));
      await eventually("its share", async () => (await phase()) === "Analysing");
      await eventually("its promotion", async () => (await phase()) === "Promoting");
      await deployed.renewed("mist", before, 2);
    });
    await world.condition(name, "Ready", "True");
    await canaryGone();
  });
});

describe("a rollout where every device is taken", () => {
  /** Two made-up devices of the node that no other test asks for (Kubernetes, "Advertise Extended Resources for a Node"). */
  const resourceName = `${kubectl.namespace}.example/gpu`;
  const cluster = new Kubectl("default");
  const rollout = { whenFull: "Trade", maxSurge: 1, maxUnavailable: 0 };
  const traded = (more: object = {}) =>
    arcana({ replicas: 2, accelerator: { count: 1, resourceName }, rollout, ...more });
  let node = "";

  async function patchNode(operation: object): Promise<void> {
    const path = `/status/capacity/${resourceName.replace("/", "~1")}`;
    const patch = JSON.stringify([{ path, ...operation }]);
    await cluster.do("patch", "node", node, "--subresource=status", "--type=json", "-p", patch);
  }

  beforeAll(async () => {
    [node = ""] = (await cluster.list("nodes")).map(({ metadata }) => metadata.name);
    await patchNode({ op: "add", value: "2" });
  });
  afterAll(() => patchNode({ op: "remove" }));

  it("trades one pod for the next, and cuts no stream", async () => {
    await deployed.setModels(traded());
    await world.condition(name, "Ready", "True");
    const before = await deployed.pods("arcana");
    const words = { text, speaker: "luna", modelId: "arcana", samplingRate };
    const roll = async () => {
      await deployed.setModels(traded({ env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] }));
      await deployed.renewed("arcana", before, 2);
    };
    await deployed.uncut("rollout with every device taken", words, roll, { streams: 4, listening: true });
    await eventually("the trade to be over", async () => {
      const live = await kubectl.get("deployment", `${name}-arcana`);
      return live?.spec.strategy.rollingUpdate.maxUnavailable === 0;
    });
  });
});
