/** Tests that a rollback of a pool interrupts none of 40 streams and 24 contexts on WebSockets. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../../support/cluster/deployed.ts";
import { run } from "../../support/cluster/real-cluster.ts";
import { mist, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";

const name = "history";
const world = new World(inject("cluster"), "rollback");
const deployed = new Deployed(world, name);
const program = fileURLToPath(new URL("../../../operator/main.ts", import.meta.url));
const text = "Every one of these words is heard to its end, whatever happens to the pod that speaks it.";
const body = { text, speaker: "alan", modelId: "mist" };
const clients = { streams: 40, sockets: 24, listening: true };
/** One replica may serve all clients during the rollback. */
const pool = { replicas: 2, maxConcurrentStreams: 96 };
const changed = mist({ ...pool, env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] });

beforeAll(() => world.openWith(name, { models: [mist(pool)] }));
afterAll(() => world.close());

async function tool(command: "history" | "rollback", ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(process.execPath, [
    ...[program, command, name, "mist", "-n", world.namespace],
    ...words,
  ]);
  if (code !== 0) throw new Error(`tts-operator ${command}: ${stderr}`);
  return stdout;
}

const revisions = async () =>
  JSON.parse(await tool("history", "--output", "json")) as { revision: string; isCurrent: boolean }[];
const templateOf = async () =>
  JSON.stringify((await world.kubectl.get("deployment", `${name}-mist`))?.spec.template.spec.containers);

describe("40 streams and 24 contexts on WebSockets are not interrupted", () => {
  it("while a pool returns to its previous revision", async () => {
    const original = await templateOf();
    const before = await deployed.pods("mist");
    await eventually("the first revision", async () => (await revisions()).length === 1);
    await deployed.setModels(changed);
    await deployed.renewed("mist", before, 2);
    await eventually("the second revision", async () => (await revisions()).length === 2);
    expect(await templateOf()).not.toBe(original);
    const pods = await deployed.pods("mist");
    let tookMs = 0;
    const { ok, contexts } = await deployed.uncut(
      "rollback",
      body,
      async () => {
        const began = performance.now();
        await tool("rollback");
        await deployed.renewed("mist", pods, 2);
        tookMs = performance.now() - began;
      },
      clients,
    );
    console.info(`rollback: two new pods after ${(tookMs / 1000).toFixed(1)} s`);
    expect(ok).toBeGreaterThanOrEqual(clients.streams);
    expect(contexts).toBeGreaterThanOrEqual(clients.sockets);
    expect(await templateOf()).toBe(original);
    expect((await revisions()).length).toBe(2);
    expect(await world.restarts(name)).toEqual([]);
  });

  it("while the rollback ends and the changed settings apply again", async () => {
    const pods = await deployed.pods("mist");
    const end = async () => {
      await tool("rollback", "--cancel");
      await deployed.renewed("mist", pods, 2);
    };
    await deployed.uncut("end of the rollback", body, end, clients);
    expect(await templateOf()).toContain("debug");
  });
});
