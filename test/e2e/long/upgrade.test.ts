/** Back to the previous chart with its CRDs and forward again, while 16 streams are spoken: nothing is cut and no pod rolls. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually, Kubectl, run } from "../../support/real-cluster.ts";
import { mist, ttsDeployment, World } from "../../support/world.ts";

const world = new World({ cluster: inject("cluster"), namespace: "e2e-upgrade" });
const system = new Kubectl("svc-tts-system");
const release = "tts-operator";
const chart = "charts/tts-operator";
const crd = "ttsdeployments.tts.svc.dev";
const body = { text: "An upgrade cuts no one short. ".repeat(4), speaker: "alan", modelId: "mist" };

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-previous-"));
  await world.open();
  await world.license(30);
  await world.kubectl.apply(
    ttsDeployment("voice", { models: [mist({ replicas: 2, maxConcurrentStreams: 16 })] }),
  );
  await world.condition("voice", "Ready", "True", 180_000);
});

afterAll(async () => {
  await helmUpgrade(chart);
  await world.close();
  await rm(folder, { recursive: true });
});

describe("an upgrade of the chart", () => {
  it("from the previous one, with its CRDs, rolls no pod and cuts no stream", async () => {
    const previous = await previousChart();
    const present = await schemaOf();
    const pods = await podsOf();
    const load = world.load("voice", body, { streams: 16, limitSeconds: 240 });
    await helmUpgrade(previous);
    expect(await schemaOf()).not.toBe(present);
    await helmUpgrade(chart);
    expect(await schemaOf()).toBe(present);
    await world.condition("voice", "Ready", "True", 60_000);
    const { ok, failures } = await load.stop();
    expect(failures).toEqual([]);
    expect(ok).toBeGreaterThan(50);
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
    await world.condition("voice", "Ready", "True", 60_000);
  });
});

/** The chart as it was before the last change of its CRDs, from the repository's own history. */
async function previousChart(): Promise<string> {
  const log = await run("git", ["log", "-1", "--format=%H", "--", `${chart}/templates/crds`]);
  const archive = await run("bash", [
    "-c",
    'git archive "$1^" "$2" | tar -x -C "$3"',
    "previous",
    log.stdout.trim(),
    chart,
    folder,
  ]);
  if (archive.code !== 0) {
    throw new Error(
      `the history has no chart before the present one (a shallow clone?): ${archive.stderr.trim()}`,
    );
  }
  return join(folder, chart);
}

/** With the values as they are: the same images, so that only what the chart brings changes. */
async function helmUpgrade(path: string): Promise<void> {
  const values = await run("helm", ["-n", system.namespace, "get", "values", release, "--output", "yaml"]);
  const flags = ["--values", "-", "--wait", "--timeout", "120s"];
  const ran = await run("helm", ["-n", system.namespace, "upgrade", release, path, ...flags], values.stdout);
  if (ran.code !== 0) throw new Error(`helm upgrade ${path}: ${ran.stderr.trim()}`);
}

async function schemaOf(): Promise<string> {
  const found = await system.get("crd", crd);
  return JSON.stringify(found?.spec.versions);
}

async function podsOf(): Promise<string[]> {
  const pods = await world.kubectl.list("pods", "tts.svc.dev/deployment=voice");
  return pods.map(({ metadata }) => metadata.name).sort();
}
