/**
 * Tests that no context of 50 WebSockets that speak is interrupted while a pool is rolled out, drained and scaled
 * down, while the API pods are replaced, and while the operator is upgraded and rolled back.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../../support/cluster/deployed.ts";
import {
  evictAll,
  replaceOperator,
  restartApi,
  rollOut,
  scaleDown,
} from "../../support/cluster/disruptions.ts";
import { Release, type Values } from "../../support/cluster/real-cluster.ts";
import { mist, World } from "../../support/cluster/world.ts";

const name = "agents";
const world = new World(inject("cluster"), "sockets");
const deployed = new Deployed(world, name);
const release = new Release();
const text = "Every agent says these words to their end, whatever happens to the pod that speaks them.";
const body = { text, speaker: "alan", modelId: "mist" };
/** All sockets may speak on one replica, while the pool is scaled down. */
const pool = { maxConcurrentStreams: 64 };
const clients = { streams: 0, sockets: 50 };
let installed: Values = {};

beforeAll(async () => {
  installed = await release.values();
  await world.openWith(name, { models: [mist({ ...pool, replicas: 2 })] });
});

afterAll(async () => {
  try {
    await release.restore(installed);
  } finally {
    await world.close();
  }
});

/** Runs an action while the sockets speak. Each socket completes one more context afterwards. */
async function whileSpeaking(what: string, act: () => Promise<unknown>): Promise<void> {
  const { contexts } = await deployed.uncut(what, body, act, clients);
  expect(contexts).toBeGreaterThanOrEqual(clients.sockets);
}

describe("50 contexts on WebSockets are not interrupted", () => {
  it("while a pool is rolled out", () => whileSpeaking("rolling update", () => rollOut(world, deployed)));

  it("while the pods of a pool are evicted one after the other", () =>
    whileSpeaking("drain", () => evictAll(world, deployed)));

  it("while the API pods are replaced", () =>
    whileSpeaking("restart of the API", () => restartApi(world, deployed)));

  it("while the operator is upgraded and rolled back, which replaces no other pod", async () => {
    const pods = await deployed.allPods();
    const upgrade = () => release.upgrade("--reset-then-reuse-values", "--set", "logLevel=debug");
    await whileSpeaking("operator upgrade", async () => {
      await replaceOperator(world, deployed, release, upgrade);
      await replaceOperator(world, deployed, release, () => release.rollback());
    });
    expect(await deployed.allPods()).toEqual(pods);
  });

  it("while a pool is scaled down", () => whileSpeaking("scale-down", () => scaleDown(deployed, pool)));
});
