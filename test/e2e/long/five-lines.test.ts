/**
 * Tests the way from nothing to speech with five lines of YAML, without a class and with a class. The operator trusts
 * no license key here, so no license is required. The test prints the time of each phase.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { api } from "../../../config/contract/names.ts";
import { watchObjects } from "../../support/cluster/api-reader.ts";
import { condition, type KubeObject, Release, run, type Values } from "../../support/cluster/real-cluster.ts";
import { World } from "../../support/cluster/world.ts";

const cluster = inject("cluster");
const release = new Release();
const body = { text: "Five lines are enough.", speaker: "alan", modelId: "mist" };
const className = "five-lines";
let installed: Values = {};

const withoutClass = `apiVersion: tts.svc.dev/v1alpha1
kind: TtsDeployment
metadata: { name: demo }
spec: { api: { keys: { secretRef: { name: tts-keys } } },
  models: [{ name: mist, kind: mist, replicas: 1 }] }`;

/** The class has the number of replicas and allows only this kind of Service. */
const withClass = `apiVersion: tts.svc.dev/v1alpha1
kind: TtsDeployment
metadata: { name: demo }
spec: { className: ${className}, api: { keys: { secretRef: { name: tts-keys } } },
  models: [{ name: mist, kind: mist }] }`;

beforeAll(async () => {
  installed = await release.values();
  const flags = ["--set", "license.development.enabled=false", "--set", "license.development.jwks="];
  await release.upgrade("--reset-then-reuse-values", ...flags);
  await release.system.apply({
    apiVersion: api.apiVersion,
    kind: "TtsClass",
    metadata: { name: className },
    spec: {
      defaults: { replicas: 1 },
      limits: { allowedServiceTypes: ["ClusterIP"], podTemplate: "Safe", maxReplicasPerNamespace: 4 },
    },
  });
});

afterAll(async () => {
  try {
    await release.system.do("delete", "ttsclass", className, "--ignore-not-found");
  } finally {
    await release.restore(installed);
  }
});

/** Records when a watch first reports each phase of the model pod. The times are real and only printed. */
class PhaseTimes {
  readonly #began = performance.now();
  readonly #times = new Map<string, number>();

  note(phase: string): void {
    if (!this.#times.has(phase)) this.#times.set(phase, performance.now() - this.#began);
  }

  notePod({ spec, status, metadata }: KubeObject): void {
    if (metadata.labels?.["tts.svc.dev/pool"] !== "mist") return;
    this.note("model pod created");
    if (spec?.nodeName !== undefined) this.note("scheduled");
    const [container] = (status?.containerStatuses ?? []) as { state?: { running?: object } }[];
    if (container?.state?.running !== undefined) this.note("container started (image on the node)");
    if (condition({ spec, status, metadata, apiVersion: "v1", kind: "Pod" }, "Ready")?.status === "True")
      this.note("model loaded and warm");
  }

  get text(): string {
    let last = 0;
    const lines = [...this.#times].map(([phase, ms]) => {
      const line = `  ${phase}: ${(ms / 1000).toFixed(1)} s (+${((ms - last) / 1000).toFixed(1)} s)`;
      last = ms;
      return line;
    });
    return lines.join("\n");
  }
}

async function speakWith(what: string, manifest: string): Promise<KubeObject | undefined> {
  expect(manifest.split("\n")).toHaveLength(5);
  const world = new World(cluster, "lines");
  try {
    await world.open();
    await world.clientReady();
    const times = new PhaseTimes();
    const watch = await watchObjects("pods", world.namespace, (pod) => times.notePod(pod));
    const { code, stderr } = await run("kubectl", ["-n", world.namespace, "apply", "-f", "-"], manifest);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    times.note("applied");
    await world.condition("demo", "Ready", "True");
    times.note("TtsDeployment ready");
    const { status, body: wav } = await world.speak("demo", body);
    times.note("speech (with the start of the client)");
    await watch.stop();
    expect(status).toBe(200);
    expect(wav.length).toBeGreaterThan(20_000);
    console.info(`${what}:\n${times.text}`);
    return await world.deployment("demo");
  } finally {
    await world.close();
  }
}

describe("five lines of YAML lead to speech", () => {
  it("without a class and without a license", async () => {
    const deployment = await speakWith("without a class", withoutClass);
    expect(condition(deployment, "LicenseValid")).toMatchObject({ status: "True", reason: "NotRequired" });
  });

  it("with a class, which has the number of replicas", async () => {
    const deployment = await speakWith("with a class", withClass);
    expect(condition(deployment, "ClassAccepted")).toMatchObject({ status: "True" });
  });
});
