/**
 * Tests the collector beside arcana in a real pod: it sends metrics to a backend that requires a token, and
 * ends after the model container.
 */
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { readText } from "../../support/cluster/api-reader.ts";
import { giveNodeImage } from "../../support/cluster/node-images.ts";
import type { KubeObject } from "../../support/cluster/real-cluster.ts";
import { arcana, World } from "../../support/cluster/world.ts";
import { collectorProgram } from "../../support/collector.ts";
import { eventually } from "../../support/eventually.ts";

const cluster = inject("cluster");
const world = new World(cluster, "telemetry");
const { kubectl } = world;
const name = "measured";
const image = "svc-tts.local/otelcol:1";
const token = "s3cret-of-the-backend";
const body = { text: "Good morning, everybody.", speaker: "luna", modelId: "arcana" };
/** The speech of this request plays longer than a pod without streams takes to end. */
const long = {
  ...body,
  text: "A client listens to every one of these words in real time. ".repeat(4),
};
/** Metrics that the model serves at /metrics, and also sends (specification 6.3). */
const metrics = [
  "svc_tts_model_first_audio_seconds",
  "svc_tts_model_audio_seconds_total",
  "svc_tts_engine_up",
  "svc.engine.concurrent_pipeline",
  "svc.engine.generated_audio_duration",
  "svc.engine.initial_latency",
  "svc.engine.invocation_request",
];
/** A metric that is absent without a GPU. */
const absent = "svc.engine.gpu_load";

/** The line that the backend prints for a request. */
interface Post {
  readonly atMs: number;
  readonly status: number;
  readonly metrics: readonly string[];
  readonly pods: readonly string[];
}

/** A server that accepts OTLP over HTTP with the token, and prints one line for each request. */
const backendScript = `
  import { createServer } from "node:http";
  import { gunzipSync } from "node:zlib";
  const [token, deployment, ...metrics] = process.argv.slice(1);
  createServer(async (request, answer) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const known = request.headers.authorization === "Bearer " + token;
    const text = known ? gunzipSync(Buffer.concat(pieces)).toString("latin1") : "";
    console.log(JSON.stringify({
      atMs: Date.now(),
      status: known ? 200 : 401,
      metrics: metrics.filter((metric) => text.includes(metric)),
      pods: [...new Set(text.match(new RegExp(deployment + "-arcana-[a-z0-9]+-[a-z0-9]+", "g")))],
    }));
    answer.writeHead(known ? 200 : 401, { "content-type": "application/x-protobuf" }).end();
  }).listen(4318);`;
let backend: Awaited<ReturnType<World["serve"]>>;

async function posts(): Promise<Post[]> {
  const lines = (await backend.output()).split("\n").filter((line) => line.startsWith("{"));
  return lines.map((line) => JSON.parse(line) as Post);
}

beforeAll(async () => {
  if (!cluster.isLocal)
    throw new Error(
      "the collector image exists only for the local cluster: unset KUBECONFIG to run this test",
    );
  const layer = await mkdtemp(join(tmpdir(), "svc-tts-otelcol-"));
  await copyFile(await collectorProgram(), join(layer, "otelcol"));
  await giveNodeImage({ name: image, layer, config: { Entrypoint: ["/otelcol"], User: "65532" } });
  await rm(layer, { recursive: true });
  await world.open();
  backend = await world.serve("backend", 4318, backendScript, token, name, absent, ...metrics);
  const exporter = { protocol: "http/protobuf", endpoint: backend.url };
  // With this drain, the model container runs longer after its termination signal than a collector would.
  const drain = { endpointDelaySeconds: 10, maxStreamSeconds: 60 };
  const auth = { bearer: { secretRef: { name: "otlp-token" } } };
  const collector = { enabled: true, image, scrapeIntervalSeconds: 5, exporter, auth };
  await world.deploy(name, { models: [arcana({ replicas: 2, drain })], telemetry: { collector } });
});

afterAll(() => world.close());

async function arcanaPods(): Promise<KubeObject[]> {
  const found = await kubectl.list("pods", `tts.svc.dev/deployment=${name},tts.svc.dev/pool=arcana`);
  return found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

describe("a collector beside arcana", () => {
  it("sends nothing without its token, while arcana continues to serve", async () => {
    await world.condition(
      name,
      "TelemetryReady",
      "False",
      new RegExp(`these Secrets are missing: ${world.namespace}/otlp-token`),
    );
    expect(await world.speak(name, body)).toMatchObject({ status: 200 });
    const [pod = ""] = (await arcanaPods()).map(({ metadata }) => metadata.name);
    const log = () => kubectl.do("logs", pod, "-c", "collector");
    await eventually(
      "the log of the missing token",
      async () => /token: no such file or directory/.test(await log()),
      { seen: log },
    );
    expect((await posts()).map(({ status }) => status)).not.toContain(200);
  });

  it("is rejected by the backend with a wrong token", async () => {
    await giveToken("another-one");
    await eventually("a request that the backend rejects", async () =>
      (await posts()).some(({ status }) => status === 401),
    );
    expect((await posts()).map(({ status }) => status)).not.toContain(200);
  });

  it("sends the metrics of arcana with the token of a Secret", async () => {
    await giveToken(token);
    await world.condition(name, "TelemetryReady", "True");
    expect(await world.speak(name, body)).toMatchObject({ status: 200 });
    const present = (await arcanaPods()).map(({ metadata }) => metadata.name);
    const isPresent = (pod: string) => present.includes(pod);
    const received = await eventually("metrics of a stream", async () => {
      // Pods with the previous token may still send data.
      const accepted = (await posts()).filter(({ status, pods }) => status === 200 && pods.some(isPresent));
      const names = [...new Set(accepted.flatMap((post) => post.metrics))].sort();
      return metrics.every((metric) => names.includes(metric)) && names;
    });
    console.info(`received with the token: ${received.join(", ")} of ${present.join(", ")}`);
    expect(received).not.toContain(absent);
    for (const pod of present) expect(await kubectl.do("logs", pod, "-c", "collector")).not.toContain(token);
  });

  it("ends after the model container in a drain, and sends the last metrics", async () => {
    const load = await world.load(name, long, { streams: 4, listening: true });
    const [pod = ""] = (await arcanaPods()).map(({ metadata }) => metadata.name);
    await eventually("a stream on the pod", async () => {
      const path = `/api/v1/namespaces/${kubectl.namespace}/pods/${pod}:8080/proxy/metrics`;
      return /^svc_tts_model_streams [1-9]/m.test(await readText(path));
    });
    // A finalizer keeps the Pod object, so that the test can read the final states of its containers.
    await patchFinalizers(pod, ["e2e.svc.dev/read"]);
    await kubectl.do("delete", "pod", pod, "--wait=false");
    const acceptedPosts = async () =>
      (await posts()).filter(({ status, pods }) => status === 200 && pods.includes(pod)).length;
    const before = await acceptedPosts();
    await eventually("a request while the pod drains", async () => (await acceptedPosts()) > before);
    const ended = await eventually(
      "the end of both containers",
      async () => endsOf(await kubectl.get("pod", pod)),
      { seen: async () => (await kubectl.get("pod", pod))?.status },
    );
    await patchFinalizers(pod, []);
    await load.goesOn();
    const { ok, failed, failures } = await load.stop();
    console.info(`drain: ${ok} streams complete, ${failed} interrupted or failed`);
    expect(failures).toEqual([]);
    expect(ended.collectorMs).toBeGreaterThanOrEqual(ended.modelMs);
    expect(ended.collectorCode).toBe(0);
  });
});

/** Creates the Secret and then replaces the pods, as the documentation describes. */
async function giveToken(value: string): Promise<void> {
  const object = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "otlp-token" },
    stringData: { token: value },
  };
  await kubectl.apply(object);
  await kubectl.do("rollout", "restart", `deployment/${name}-arcana`);
  await kubectl.do("rollout", "status", `deployment/${name}-arcana`, "--timeout=300s");
}

async function patchFinalizers(pod: string, finalizers: readonly string[]): Promise<void> {
  const patch = JSON.stringify({ metadata: { finalizers } });
  await kubectl.do("patch", "pod", pod, "--type=merge", "--patch", patch);
}

interface Terminated {
  readonly finishedAt: string;
  readonly exitCode: number;
}

/** Returns the end of both containers. The kubelet writes the times in whole seconds. */
function endsOf(pod: KubeObject | undefined) {
  const find = (statuses: { name: string; state: { terminated?: Terminated } }[] = [], container: string) =>
    statuses.find((status) => status.name === container)?.state.terminated;
  const model = find(pod?.status?.containerStatuses, "arcana");
  const collector = find(pod?.status?.initContainerStatuses, "collector");
  if (model === undefined || collector === undefined) return undefined;
  return {
    modelMs: Date.parse(model.finishedAt),
    collectorMs: Date.parse(collector.finishedAt),
    collectorCode: collector.exitCode,
  };
}
