/** From the previous release, chart, CRDs and operator, to the present one, while 16 streams are spoken: nothing is cut and no pod rolls. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { parse } from "yaml";
import { eventually } from "../../support/eventually.ts";
import { giveNodeImage } from "../../support/node-images.ts";
import { Kubectl, run } from "../../support/real-cluster.ts";
import { mist, ttsDeployment, World } from "../../support/world.ts";

const cluster = inject("cluster");
const world = new World({ cluster, namespace: "e2e-upgrade" });
const system = new Kubectl("svc-tts-system");
const release = "tts-operator";
const chart = "charts/tts-operator";
const archive = join(import.meta.dirname, "previous-release/release.tar.gz");
const previousOperator = { repository: "svc-tts.local/previous-operator", tag: "1" };
const crd = "ttsdeployments.tts.svc.dev";
const body = { text: "An upgrade cuts no one short. ".repeat(4), speaker: "alan", modelId: "mist" };

let folder: string;
/** What the present release was installed with. */
let values: string;

beforeAll(async () => {
  if (!cluster.isLocal)
    throw new Error(
      "the previous operator's image is made for the local cluster's node: unset KUBECONFIG to run this test",
    );
  folder = await mkdtemp(join(tmpdir(), "svc-tts-previous-"));
  values = (await helm(["get", "values", release, "--output", "yaml"])).stdout;
  await giveNodeImage({
    name: `${previousOperator.repository}:${previousOperator.tag}`,
    layer: await previousRelease(),
    base: cluster.operatorArchive,
    config: { Entrypoint: ["node", "/previous/operator/main.ts"] },
  });
});

afterAll(async () => {
  await helmUpgrade(chart);
  await world.close();
  await rm(folder, { recursive: true });
});

describe("an upgrade from the previous release, with its CRDs", () => {
  it("finds pods that the previous operator made", async () => {
    const present = await schemaOf();
    await helmUpgrade(join(folder, "layer/previous", chart), { images: { operator: previousOperator } });
    expect(await schemaOf()).not.toBe(present);
    await eventually("the previous operator alone", async () => {
      const images = (await operatorPods()).map(({ spec }) => spec.containers[0].image as string);
      return images.length === 1 && images[0]?.startsWith(previousOperator.repository);
    });
    await world.open();
    await world.license(30);
    await world.kubectl.apply(
      ttsDeployment("voice", { models: [mist({ replicas: 2, maxConcurrentStreams: 16 })] }),
    );
    await world.condition("voice", "Ready", "True");
  }, 400_000);

  it("rolls no pod and cuts no stream", async () => {
    const previous = await schemaOf();
    const pods = await podsOf();
    const load = world.load("voice", body, { streams: 16, limitSeconds: 240 });
    await helmUpgrade(chart);
    expect(await schemaOf()).not.toBe(previous);
    // the previous operator made none
    await eventually("the present operator's first pass", async () => {
      return (await world.kubectl.list("pdb", "tts.svc.dev/deployment=voice")).length > 0;
    });
    await world.condition("voice", "Ready", "True");
    const { ok, failures } = await load.stop();
    console.info(`operator and CRDs upgraded: ${ok} streams spoken, ${failures.length} cut or failed`);
    expect(failures).toEqual([]);
    expect(ok).toBeGreaterThanOrEqual(16);
    expect(await podsOf()).toEqual(pods);
  }, 300_000);

  it("is followed by an operator that works: a change rolls out", async () => {
    await world.kubectl.do("patch", "ttsd", "voice", "--type=merge", "-p", '{"spec":{"api":{"replicas":1}}}');
    await eventually("one API pod", async () => {
      const pods = await world.kubectl.list(
        "pods",
        "tts.svc.dev/deployment=voice,app.kubernetes.io/component=api",
      );
      return pods.length === 1;
    });
    await world.condition("voice", "Ready", "True");
  });
});

/** The layer that the previous operator's image has over the present one's. */
async function previousRelease(): Promise<string> {
  const layer = join(folder, "layer");
  await mkdir(join(layer, "previous"), { recursive: true });
  await promisify(execFile)("tar", ["--extract", "--file", archive, "-C", join(layer, "previous")]);
  await symlink("/app/node_modules", join(layer, "previous/node_modules"));
  return layer;
}

async function helm(args: string[], input?: string) {
  const ran = await run("helm", ["-n", system.namespace, ...args], input);
  if (ran.code !== 0) throw new Error(`helm ${args.join(" ")}: ${ran.stderr.trim()}`);
  return ran;
}

/** With the values as they were, but for `changed`. */
async function helmUpgrade(path: string, changed: { images?: { operator: object } } = {}): Promise<void> {
  const before = parse(values) as { images: object };
  const merged = { ...before, images: { ...before.images, ...changed.images } };
  const flags = ["--values", "-", "--wait", "--timeout", "120s"];
  await helm(["upgrade", release, path, ...flags], JSON.stringify(merged));
}

async function schemaOf(): Promise<string> {
  const found = await system.get("crd", crd);
  return JSON.stringify(found?.spec.versions);
}

function operatorPods() {
  return system.list("pods", "app.kubernetes.io/name=tts-operator,app.kubernetes.io/component=operator");
}

async function podsOf(): Promise<string[]> {
  const pods = await world.kubectl.list("pods", "tts.svc.dev/deployment=voice");
  return pods.map(({ metadata }) => metadata.name).sort();
}
