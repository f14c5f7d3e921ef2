/**
 * Tests an upgrade of chart, CRDs and operator from the previous release under 16 streams: no stream is
 * interrupted, and no pod is replaced.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../../support/cluster/deployed.ts";
import { giveNodeImage } from "../../support/cluster/node-images.ts";
import { Release, type Values } from "../../support/cluster/real-cluster.ts";
import { mist, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";

const cluster = inject("cluster");
const name = "voice";
const world = new World(cluster, "upgrade");
const deployed = new Deployed(world, name);
const release = new Release();
const archive = join(import.meta.dirname, "previous-release/release.tar.gz");
const previousOperator = { repository: "svc-tts.local/previous-operator", tag: "1" };
const crd = "ttsdeployments.tts.svc.dev";
/** One sentence, so that each context on a WebSocket has the same audio. */
const text = `${"An upgrade interrupts no sentence, ".repeat(3)}and the listener hears no gap.`;
const body = { text, speaker: "alan", modelId: "mist" };

let folder: string;
/** The values of the installed release. */
let values: Values;

beforeAll(async () => {
  if (!cluster.isLocal)
    throw new Error(
      "the image of the previous operator exists only on the local cluster's node: unset KUBECONFIG to run this test",
    );
  folder = await mkdtemp(join(tmpdir(), "svc-tts-previous-"));
  values = await release.values();
  await giveNodeImage({
    name: `${previousOperator.repository}:${previousOperator.tag}`,
    layer: await previousRelease(),
    base: cluster.operatorArchive,
    config: { Entrypoint: ["node", "/previous/operator/main.ts"] },
  });
});

afterAll(async () => {
  await release.upgradeTo(values);
  await world.close();
  await rm(folder, { recursive: true });
});

describe("an upgrade from the previous release, with its CRDs", () => {
  it("starts from a TtsDeployment whose pods the previous operator created", async () => {
    const present = await schemaOf();
    const operators = await release.operatorPods();
    const images = { ...(values.images as object), operator: previousOperator };
    await release.upgradeTo({ ...values, images }, join(folder, "layer/previous/charts/tts-operator"));
    expect(await schemaOf()).not.toBe(present);
    await release.replaced(operators);
    const [operator] = await release.operatorPods();
    expect(operator?.spec.containers[0].image).toMatch(previousOperator.repository);
    await world.openWith(name, { models: [mist({ replicas: 2, maxConcurrentStreams: 24 })] });
  });

  it("replaces no pod, and interrupts no stream and no context on a WebSocket", async () => {
    const previous = await schemaOf();
    const pods = await deployed.allPods();
    const upgrade = async () => {
      await release.upgradeTo(values);
      expect(await schemaOf()).not.toBe(previous);
      // Only the present operator creates PodDisruptionBudgets.
      await eventually("the first reconcile of the present operator", async () => {
        return (await world.kubectl.list("pdb", `tts.svc.dev/deployment=${name}`)).length > 0;
      });
      await world.condition(name, "Ready", "True");
    };
    const clients = { streams: 16, sockets: 4, listening: true };
    await deployed.uncut("operator and CRDs upgraded", body, upgrade, clients);
    expect(await deployed.allPods()).toEqual(pods);
  });

  it("results in a working operator, which applies a change", async () => {
    await deployed.patch({ api: { replicas: 1 } });
    await eventually("one API pod", async () => (await deployed.apiPods()).length === 1);
    await world.condition(name, "Ready", "True");
  });
});

/**
 * Creates the layer that turns the current operator image into the image of the previous release. Returns its
 * folder.
 */
async function previousRelease(): Promise<string> {
  const layer = join(folder, "layer");
  await mkdir(join(layer, "previous"), { recursive: true });
  await promisify(execFile)("tar", ["--extract", "--file", archive, "-C", join(layer, "previous")]);
  await symlink("/app/node_modules", join(layer, "previous/node_modules"));
  return layer;
}

async function schemaOf(): Promise<string> {
  const found = await release.system.get("crd", crd);
  return JSON.stringify(found?.spec.versions);
}
