/**
 * Tests a running `TtsDeployment`: scaling, a restart of the API tier, a hung model, and an expired license.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../support/cluster/deployed.ts";
import { restartApi } from "../support/cluster/disruptions.ts";
import { mist, World } from "../support/cluster/world.ts";
import { eventually } from "../support/eventually.ts";

const name = "voice";
const world = new World(inject("cluster"), "operations");
const { kubectl } = world;
const deployed = new Deployed(world, name);
const body = { text: "We will meet at the station tomorrow morning.", speaker: "alan", modelId: "mist" };
/** Detects a hung container within seconds. With the default probes, the detection takes half a minute. */
const probes = { liveness: { periodSeconds: 2, failureThreshold: 3, timeoutSeconds: 2 } };

beforeAll(() => world.openWith(name, { models: [mist()] }));
afterAll(() => world.close());

describe("a TtsDeployment in operation", () => {
  it("follows kubectl scale if the spec sets no replicas, and the spec otherwise", async () => {
    const { replicas: _, ...free } = mist() as { replicas: number };
    await deployed.setModels(free);
    await kubectl.do("scale", "ttsmp", `${name}-mist`, "--replicas=2");
    await eventually("two ready replicas", async () => (await deployed.readyReplicas("mist")) === 2);
    await deployed.setModels(mist());
    await eventually("one replica", async () => (await deployed.pods("mist")).length === 1);
  });

  it("restarts its API pods while every request succeeds, and every context on a WebSocket is complete", async () => {
    expect(await deployed.apiPods()).toHaveLength(2);
    const restart = () => restartApi(world, deployed);
    await deployed.uncut("restart of the API", body, restart, { streams: 4, sockets: 4 });
  });

  it("restarts a model container that hangs, while its API keeps running", async () => {
    const slow = await deployed.pods("mist");
    await deployed.setModels(mist({ probes }));
    await deployed.renewed("mist", slow, 1);
    const [pod = ""] = await deployed.pods("mist");
    const before = await deployed.restarts("tts.svc.dev/pool=mist");
    const apiBefore = await deployed.restarts("app.kubernetes.io/component=api");
    await kubectl.exec(pod, "node", "--input-type=module", "-e", hang);
    await eventually(
      "the liveness probe to restart the container",
      async () => (await deployed.restarts("tts.svc.dev/pool=mist")) > before,
    );
    expect(await world.health(name)).toMatchObject({ licenseStatus: "valid" });
    await eventually("the pool to be ready again", async () => (await deployed.readyReplicas("mist")) === 1);
    expect(await deployed.restarts("app.kubernetes.io/component=api")).toBe(apiBefore);
    await eventually("the API to reach the model", async () => (await world.health(name)).apiStatus === "ok");
    await eventually(
      "the pool to synthesize speech",
      async () => (await world.speak(name, body)).status === 200,
    );
  });

  it("keeps its pods with an expired license, and reports the delayed scale-up", async () => {
    const pods = await deployed.allPods();
    const generation = async () => (await kubectl.get("deployment", `${name}-mist`))?.metadata.generation;
    const before = await generation();
    await world.license(-60, { graceDays: 0 });
    const found = await world.condition(name, "LicenseValid", "False");
    expect(found).toMatchObject({ reason: "Expired", message: expect.stringContaining("Renew") });
    await deployed.setModels(mist({ probes, replicas: 2 }));
    await world.condition(name, "RolloutHealthy", "False", /1 of 2 replicas run, because the license/);
    // The operator writes the condition after all children, so it has applied the change here.
    expect(await generation(), "the Deployment's generation").toBe(before);
    expect(await deployed.allPods()).toEqual(pods);
    await world.license(30);
    await eventually("the delayed scale-up", async () => (await deployed.readyReplicas("mist")) === 2);
    await world.condition(name, "LicenseValid", "True");
  });

  it("reports the wrong signature of a forged license, and keeps its pods", async () => {
    const pods = await deployed.pods("mist");
    await world.forgeLicense();
    const found = await world.condition(name, "LicenseValid", "False");
    expect(found).toMatchObject({ reason: "Invalid", message: expect.stringMatching(/signature/) });
    expect(await deployed.pods("mist")).toEqual(pods);
  });
});

/** A script that makes the container's process run an endless loop, through the process's debugger. */
const hang = `
  process._debugProcess(1);
  let targets;
  while (targets === undefined) {
    targets = await fetch("http://127.0.0.1:9229/json").then((answer) => answer.json(), () => undefined);
  }
  const socket = new WebSocket(targets[0].webSocketDebuggerUrl);
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  // The response to the first message shows that the debugger is connected.
  const send = (id, expression) =>
    socket.send(JSON.stringify({ id, method: "Runtime.evaluate", params: { expression } }));
  const answered = new Promise((resolve) => socket.addEventListener("message", resolve));
  send(1, "1");
  await answered;
  send(2, "while (true) {}");
  while (socket.bufferedAmount > 0) await new Promise(setImmediate);
  process.exit(0);`;
