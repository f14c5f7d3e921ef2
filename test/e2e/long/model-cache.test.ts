/**
 * Tests a `TtsModelCache` that two pools on two nodes share. The node of the fetch loses power during the fetch, and
 * the next Job requests only the rest of the file. A voice that is added later is served without a rollout.
 */
import { createHash } from "node:crypto";
import { chownSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { api, children } from "../../../config/contract/names.ts";
import { Deployed } from "../../support/cluster/deployed.ts";
import { condition, run } from "../../support/cluster/real-cluster.ts";
import { mist, ttsDeployment, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";
import { FileServer } from "../../support/server/file-server.ts";
import { VoicesFolder } from "../../support/voices/folder.ts";

const cluster = inject("cluster");
const world = new World(cluster, "cache");
const { kubectl } = world;
const cacheName = "voices";
/** The user of the containers. It must be able to write to the volume. */
const containerUser = 65532;
/** The address of this machine in the network of the local cluster. */
const hostAddress = "10.250.0.254";
/** With this rate, the fetch of the large model takes about a quarter of a minute. */
const bytesPerSecond = 5_000_000;
const largeVoice = "en_US-vera-medium";
const addedVoice = "en_GB-nora-low";
const deployments = ["one", "two"].map((name) => new Deployed(world, name));
const nodeOf = (name: string) => (name === "one" ? "node1" : "node2");
const files = new VoicesFolder();
const volumeFolder = mkdtempSync(join(tmpdir(), "svc-tts-cache-"));
const volumeName = `${kubectl.namespace}-cache`;
let server: FileServer;

const secondNode = (action: "start" | "stop" | "crash") =>
  run(fileURLToPath(new URL("../../cluster/second-node.sh", import.meta.url)), [action]).then((ran) => {
    if (ran.code !== 0) throw new Error(ran.stderr);
  });

beforeAll(async () => {
  if (!cluster.isLocal)
    throw new Error("only the local cluster can start a second node: unset KUBECONFIG to run this test");
  await world.open();
  await world.clientReady();
  await world.license(30);
  await secondNode("start");
  server = await FileServer.start(hostAddress);
  server.bytesPerSecond = bytesPerSecond;
  files.largePiper(largeVoice);
  files.piper(addedVoice);
  for (const voice of [largeVoice, addedVoice])
    for (const path of pathsOf(voice)) server.files.set(`/${path}`, readFileSync(join(files.path, path)));
  chownSync(volumeFolder, containerUser, containerUser);
  await kubectl.apply(sharedVolume());
});

afterAll(async () => {
  await world.close();
  await secondNode("stop");
  await kubectl.do("delete", "persistentvolume", volumeName, "--ignore-not-found", "--timeout=60s");
  await server[Symbol.asyncDispose]();
  files.delete();
  rmSync(volumeFolder, { recursive: true });
});

const pathsOf = (voice: string) => [`${voice}.onnx`, `${voice}.onnx.json`];

/** Returns a volume in a folder of this machine. Both nodes use its disk, so the volume is shared. */
function sharedVolume(): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: volumeName },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteMany"],
      storageClassName: "",
      persistentVolumeReclaimPolicy: "Retain",
      claimRef: { namespace: kubectl.namespace, name: children.cacheClaim(cacheName) },
      hostPath: { path: volumeFolder, type: "Directory" },
    },
  };
}

function cacheOf(...voices: readonly string[]): object {
  const sources = voices.flatMap(pathsOf).map((path) => ({
    url: `${server.url}/${path}`,
    sha256: createHash("sha256")
      .update(server.files.get(`/${path}`) ?? "")
      .digest("hex"),
  }));
  return {
    apiVersion: api.apiVersion,
    kind: "TtsModelCache",
    metadata: { name: cacheName },
    spec: {
      sources,
      storage: { claim: { size: "1Gi", accessModes: ["ReadWriteMany"] } },
      // The Job runs on the node that loses power.
      nodeSelector: { "svc-tts.local/node": "second" },
    },
  };
}

const readCache = () => kubectl.get("ttsmc", cacheName);

async function untilCacheReady(): Promise<void> {
  await eventually(
    "the cache to be ready",
    async () => {
      const cache = await readCache();
      return (
        cache?.status?.observedGeneration === cache?.metadata.generation &&
        condition(cache, "Ready")?.status === "True"
      );
    },
    { limitMs: 240_000, seen: async () => (await readCache())?.status },
  );
}

async function untilServed(voice: string): Promise<void> {
  const body = { text: "The new voice is here.", speaker: voice.toLowerCase(), modelId: "mist" };
  await Promise.all(
    deployments.map(({ name }) =>
      eventually(`speech of ${voice} from ${name}`, async () => {
        const { status, body: wav } = await world.speak(name, body);
        return status === 200 && wav.length > 10_000;
      }),
    ),
  );
}

describe("a TtsModelCache that two pools on two nodes share", () => {
  it("makes both pools wait, with its state in their condition", async () => {
    for (const { name } of deployments) {
      const podTemplate = { spec: { nodeSelector: { "kubernetes.io/hostname": nodeOf(name) } } };
      const pool = mist({ cache: { name: cacheName }, podTemplate });
      const more = { api: { replicas: 1, keys: { secretRef: { name: "tts-keys" } } }, models: [pool] };
      await kubectl.apply(ttsDeployment(name, more));
    }
    await kubectl.apply(cacheOf(largeVoice));
    for (const { name } of deployments)
      await world.condition(name, "ModelsReady", "False", /TtsModelCache voices/);
    expect(await kubectl.list("pods", "tts.svc.dev/pool=mist")).toEqual([]);
  });

  it("resumes the fetch after its node has lost power, and both pools serve the voice", async () => {
    const path = `/${largeVoice}.onnx`;
    const size = server.files.get(path)?.length ?? 0;
    await eventually("a quarter of the large file", () => server.sentBytes > size / 4);
    await eventually(
      "the progress in the status",
      async () => ((await readCache())?.status?.progress?.bytes ?? 0) > 0,
    );
    await secondNode("crash");
    const downAtMs = Date.now();
    await secondNode("start");
    const upAtMs = Date.now();
    await eventually("the failed attempt in the status", async () => (await readCache())?.status?.failure, {
      limitMs: 200_000,
      seen: async () => [(await readCache())?.status, await kubectl.list("pods")],
    });
    const { failure } = (await readCache())?.status ?? {};
    await untilCacheReady();
    const readyAtMs = Date.now();
    const ranges = server.requests.filter((request) => request.path === path).map(({ range }) => range);
    const { fetched } = (await readCache())?.status ?? {};
    console.info(
      [
        `file of ${size} bytes; requested ranges: ${ranges.map((range) => range ?? "all").join(", ")}`,
        `the server sent ${server.sentBytes} bytes`,
        `node restarted after ${((upAtMs - downAtMs) / 1000).toFixed(1)} s; ready ${((readyAtMs - upAtMs) / 1000).toFixed(1)} s later`,
        `failure: ${failure?.reason}: ${failure?.message}`,
        `fetched: ${JSON.stringify(fetched)}`,
      ].join("\n"),
    );
    const [first, ...later] = ranges;
    expect(first).toBeUndefined();
    expect(later.length).toBeGreaterThan(0);
    for (const range of later) expect(Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1])).toBeGreaterThan(0);
    expect(server.sentBytes).toBeLessThan(2 * size);
    expect(failure?.reason).toBe("FetchInterrupted");
    expect(fetched).toMatchObject({ files: 2 });
    for (const { name } of deployments) await world.condition(name, "Ready", "True");
    const nodes = (await kubectl.list("pods", "tts.svc.dev/pool=mist")).map(({ spec }) => spec.nodeName);
    expect(nodes.sort()).toEqual(["node1", "node2"]);
    expect((await readCache())?.status?.users).toEqual(["one-mist", "two-mist"]);
    await untilServed(largeVoice);
  });

  it("serves an added voice in both pools without a rollout", async () => {
    const states = () =>
      Promise.all(
        deployments.map(async (deployed) => [await deployed.allPods(), await deployed.restarts("")]),
      );
    const before = await states();
    await kubectl.apply(cacheOf(largeVoice, addedVoice));
    const body = {
      text: "The new voice is here.",
      speaker: addedVoice.toLowerCase(),
      modelId: "mist",
    };
    const heard = await world.firstAudioTimes(
      deployments.map(({ name }) => name),
      body,
    );
    await untilCacheReady();
    const completeAtMs = Math.max(
      ...pathsOf(addedVoice).map((path) => statSync(join(volumeFolder, path)).ctimeMs),
    );
    for (const { deployment, atMs } of heard)
      console.info(
        `${deployment}: heard ${((atMs - completeAtMs) / 1000).toFixed(1)} s after its files were complete`,
      );
    expect(await states()).toEqual(before);
    await untilServed(largeVoice);
  });
});
