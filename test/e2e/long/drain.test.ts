/**
 * Drains one of two nodes with kubectl while 32 clients receive speech from both nodes, half of them over WebSockets:
 * no stream and no context is interrupted, and no request fails.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { readText } from "../../support/cluster/api-reader.ts";
import { Deployed } from "../../support/cluster/deployed.ts";
import { run } from "../../support/cluster/real-cluster.ts";
import { World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";

const cluster = inject("cluster");
const world = new World(cluster, "drain");
const { kubectl } = world;
const name = "spread";
const deployed = new Deployed(world, name);
const streams = 16;
const sockets = 16;
/**
 * Twenty seconds of speech at a high rate. Sockets buffer only a few seconds of it, so a client that reads in
 * real time keeps its API pod busy.
 */
const body = {
  text: "Everyone who listens hears this to its end, also when the machine that reads it is taken away. ".repeat(
    4,
  ),
  samplingRate: 192_000,
  speaker: "luna",
  modelId: "arcana",
};
const secondNode = (what: "start" | "stop") =>
  run(fileURLToPath(new URL("../../cluster/second-node.sh", import.meta.url)), [what]).then((ran) => {
    if (ran.code !== 0) throw new Error(ran.stderr);
  });

beforeAll(async () => {
  if (!cluster.isLocal)
    throw new Error("only the local cluster can start a second node: unset KUBECONFIG to run this test");
  // The client pod starts first, so that it runs on the node that is not drained.
  await world.open();
  await world.clientReady();
  await secondNode("start");
  const onePerNode = [{ topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "DoNotSchedule" }];
  const drain = { endpointDelaySeconds: 3, maxStreamSeconds: 120 };
  // Two cores have to synthesize 16 concurrent streams, so the pool uses Flite. The second node has no GPU.
  const env = [{ name: "SVC_TTS_ARCANA_GENERATOR", value: "flite" }];
  const models = [{ name: "arcana", kind: "arcana", replicas: 2, maxConcurrentStreams: 32, drain, env }];
  await world.deploy(name, { models, availability: { topologySpread: onePerNode } });
});

afterAll(async () => {
  await world.close();
  await secondNode("stop");
});

interface PlacedPod {
  readonly pod: string;
  readonly component: string;
  readonly node: string;
}

async function readPods(): Promise<PlacedPod[]> {
  const pods = await kubectl.list("pods", `tts.svc.dev/deployment=${name}`);
  return pods.map(({ metadata, spec }) => ({
    pod: metadata.name,
    component: metadata.labels?.["app.kubernetes.io/component"] ?? "",
    node: spec.nodeName as string,
  }));
}

/**
 * Returns the current streams of an API pod, or the seconds of speech that a model pod has synthesized. A
 * model pod synthesizes faster than its clients play, so it may have no current streams.
 */
async function activityOf({ pod, component }: PlacedPod): Promise<number> {
  const [port, metric] =
    component === "api" ? [8000, "svc_tts_streams"] : [8080, "svc_tts_model_audio_seconds_total"];
  const path = `/api/v1/namespaces/${kubectl.namespace}/pods/${pod}:${port}/proxy/metrics`;
  const lines = (await readText(path)).split("\n");
  const values = lines.filter((line) => line.startsWith(`${metric}{`));
  return values.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

describe("two real nodes", () => {
  it("run one replica of each tier on each node", async () => {
    const where = (await readPods()).map(({ component, node }) => `${component} ${node}`).sort();
    expect(where).toEqual(["api node1", "api node2", "model node1", "model node2"]);
  });

  it("serve 16 streams and 16 WebSockets without an interruption while one node is drained", async () => {
    const drainNode = async () => {
      const before = await readPods();
      const activity = await eventually(
        "streams on every pod",
        async () => {
          const now = await Promise.all(before.map(activityOf));
          const running = now.filter((_, i) => before[i]?.component === "api").reduce((a, b) => a + b, 0);
          return running >= streams / 2 && now.every((count) => count > 0) && now;
        },
        { seen: () => Promise.all(before.map(activityOf)) },
      );
      console.info(
        before
          .map(({ component, node }, i) => `${component} on ${node}: ${Math.round(activity[i] ?? 0)}`)
          .join(", "),
      );
      expect(await world.restarts(name)).toEqual([]);
      await kubectl.do("drain", "node2", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=600s");
      await eventually(
        "every pod on the first node",
        async () => {
          const now = await readPods();
          return now.length === 4 && now.every(({ node }) => node === "node1");
        },
        { seen: readPods },
      );
      await world.condition(name, "Ready", "True");
    };
    await deployed.uncut("drain of a node", body, drainNode, { streams, sockets, listening: true });
    expect(await world.restarts(name)).toEqual([]);
  });
});
