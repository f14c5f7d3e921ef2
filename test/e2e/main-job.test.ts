/** The main job on a real cluster: apply a `TtsDeployment`, hear it speak, and everything a day brings after that. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { recognize } from "../support/recognizer.ts";
import { readWav } from "../support/wav.ts";
import { arcana, licenseSecret, mist, ttsDeployment, World } from "../support/world.ts";

const sentence = "We will meet at the station tomorrow morning at nine.";
const name = "voice";
const world = new World({ cluster: inject("cluster"), namespace: "e2e-main" });
const { kubectl } = world;

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-e2e-"));
  await world.open();
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await world.close();
});

describe("a TtsDeployment", () => {
  it("without a license starts no pod and says what to do", async () => {
    await kubectl.apply(ttsDeployment(name));
    const found = await world.condition(name, "LicenseValid", "False");
    expect(found).toMatchObject({ reason: "Missing", message: expect.stringContaining(licenseSecret) });
    expect(await kubectl.list("pods", `tts.svc.dev/deployment=${name}`)).toEqual([]);
  });

  it("becomes ready once the license is there", async () => {
    await world.license(30);
    await world.condition(name, "Ready", "True");
    expect(await kubectl.list("ttsmp")).toHaveLength(2);
  });

  it("prints its state in kubectl's columns", async () => {
    const lines = (await kubectl.do("get", "ttsd")).trimEnd().split("\n");
    expect(lines[0]?.split(/\s{2,}/)).toEqual([
      "NAME",
      "READY",
      "LICENSE",
      "MODELS",
      "STREAMS",
      "VERSION",
      "AGE",
    ]);
    expect(lines[1]).toMatch(/^voice\s+True\s+valid\s+2\/2\s+\S+\s+\d+\.\d+\.\d+\S*\s+\d+\w+$/);
  });

  it.each(["mist", "mistv2", "arcana"])(
    "speaks a sentence that a recognizer understands, by %s",
    async (modelId) => {
      const request = { text: sentence, speaker: voiceOf(modelId), modelId, samplingRate: 16_000 };
      const answer = await world.speak(name, { ...request, audioFormat: "wav" }, "application/json");
      expect(answer).toMatchObject({ status: 200, type: expect.stringContaining("application/json") });
      const wav = readWav(Buffer.from(JSON.parse(answer.body.toString()).audioContent, "base64"));
      const { heard, wordErrorRate } = await recognize([{ ...wav, sentence }]);
      console.info(`${modelId}: heard "${heard[0]}"`);
      expect(wordErrorRate).toBeLessThanOrEqual(0.34);
    },
  );

  it.each(["mist", "arcana"])("streams WAV, by %s", async (modelId) => {
    const answer = await world.speak(name, { text: sentence, speaker: voiceOf(modelId), modelId });
    expect(answer).toMatchObject({ status: 200, type: expect.stringContaining("audio/wav") });
    expect(answer.body.subarray(0, 4).toString()).toBe("RIFF");
    expect(answer.body.length).toBeGreaterThan(44 + 2 * 16_000);
  });

  it("answers a bad request with problem+json", async () => {
    const answer = await world.speak(name, { text: sentence, speaker: "nobody" }, "audio/pcm");
    expect(answer).toMatchObject({ status: 400, type: expect.stringContaining("application/problem+json") });
    expect(JSON.parse(answer.body.toString())).toMatchObject({ errors: [{ pointer: "/speaker" }] });
  });

  it("can be looked into with kubectl exec and logs, which show no text and no key", async () => {
    const [pod] = await kubectl.list("pods", `tts.svc.dev/deployment=${name},tts.svc.dev/pool=mist`);
    expect(pod).toBeDefined();
    const node = await kubectl.exec(pod?.metadata.name ?? "", "node", "--version");
    expect(node).toMatch(/^v24\./);
    const logs = await kubectl.do("logs", "-l", `tts.svc.dev/deployment=${name}`, "--tail=-1", "--prefix");
    expect(logs.length).toBeGreaterThan(100);
    expect(logs).not.toMatch(/tomorrow morning|svc_[A-Za-z0-9]{10}/);
  });

  it("runs its containers without root, with a read-only root and inside the restricted standard", async () => {
    for (const pod of await kubectl.list("pods", `tts.svc.dev/deployment=${name}`)) {
      for (const container of pod.spec.containers) {
        expect(container.securityContext).toMatchObject({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
        });
      }
      const attempt = await kubectl.try(
        "exec",
        pod.metadata.name,
        "--",
        "node",
        "-e",
        'require("node:fs").writeFileSync("/x", "")',
      );
      expect(attempt.stderr).toMatch(/EROFS|EACCES/);
    }
  });

  it("is refused by the API server with field and rule when it is invalid", async () => {
    const bad = await kubectl.tryApply(ttsDeployment("bad", { models: [mist(), mist()] }));
    expect(bad.code).not.toBe(0);
    expect(bad.stderr).toMatch(/spec\.models/);
    const worse = await kubectl.tryApply(
      ttsDeployment("bad", { models: [mist({ drain: { maxStreamSeconds: 4000 } })] }),
    );
    expect(worse.stderr).toMatch(/drain\.maxStreamSeconds.*3600/s);
  });

  it("repairs a deleted child within a second", async () => {
    const before = await kubectl.get("service", `${name}-api`);
    await kubectl.do("delete", "service", `${name}-api`, "--wait=false");
    await eventually("the Service to be back", async () => {
      const now = await kubectl.get("service", `${name}-api`);
      return now !== undefined && now.metadata.uid !== before?.metadata.uid;
    });
    await world.condition(name, "Ready", "True");
  });

  it("scales a pool up and down", async () => {
    await patchModels([mist({ replicas: 2 }), arcana()]);
    await eventually("two ready mist replicas", async () => (await poolReady("mist")) === 2);
    await patchModels([mist(), arcana()]);
    await eventually("one mist replica", async () => (await podNames("mist")).length === 1);
  });

  it("whose model's replicas are left out follows kubectl scale", async () => {
    const { replicas: _, ...free } = mist() as { replicas: number };
    await patchModels([free, arcana()]);
    await kubectl.do("scale", "ttsmp", `${name}-mist`, "--replicas=2");
    await eventually("two ready mist replicas", async () => (await poolReady("mist")) === 2);
    await patchModels([mist(), arcana()]);
    await eventually("one mist replica", async () => (await podNames("mist")).length === 1);
  });

  it("rolls the pods of a changed model while every request succeeds", async () => {
    const load = world.load(name, { text: sentence, speaker: voiceOf("mist"), modelId: "mist" });
    const before = await podNames("mist");
    await patchModels([
      mist({ maxConcurrentStreams: 8, env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] }),
      arcana(),
    ]);
    await eventually("the mist pods to be new", async () => {
      const now = await podNames("mist");
      return now.length === 1 && !before.includes(now[0] ?? "") && (await poolReady("mist")) === 1;
    });
    await sleep(1000);
    const report = await load.stop();
    console.info(`rolling mist: ${report.ok} requests answered, ${report.failures.length} failed`);
    expect(report.failures).toEqual([]);
    expect(report.ok).toBeGreaterThan(10);
  });

  it("rolls the API pods while every request succeeds", async () => {
    const load = world.load(name, { text: sentence, speaker: voiceOf("mist"), modelId: "mist" });
    await kubectl.do("rollout", "restart", `deployment/${name}-api`);
    await sleep(2000);
    await patch({ api: { drain: { endpointDelaySeconds: 4 } } });
    await kubectl.do("rollout", "status", `deployment/${name}-api`, "--timeout=120s");
    await eventually("two API pods", async () => (await apiPods()).length === 2);
    const report = await load.stop();
    console.info(`rolling the API: ${report.ok} requests answered, ${report.failures.length} failed`);
    expect(report.failures).toEqual([]);
    expect(report.ok).toBeGreaterThan(10);
  });

  it("restarts a model container that hangs, and its API stays up", async () => {
    const [pod = ""] = await podNames("mist");
    const apiBefore = await restarts("api");
    // the debugger of the container's own process is asked to run a loop that never ends
    await kubectl.exec(pod, "node", "--input-type=module", "-e", hang);
    await eventually(
      "the liveness probe to restart the container",
      async () => (await restarts("mist")) >= 1,
    );
    expect(await world.health(name)).toMatchObject({ apiStatus: "ok", licenseStatus: "valid" });
    await eventually("the pool to be ready again", async () => (await poolReady("mist")) === 1);
    expect(await restarts("api")).toBe(apiBefore);
    const answer = await world.speak(name, { text: sentence, speaker: voiceOf("mist"), modelId: "mist" });
    expect(answer.status).toBe(200);
  });

  it("with more GPUs asked than any node has keeps mist serving and shows the scheduler's reason", async () => {
    await patchModels([mist(), arcana({ accelerator: { count: 63 } })]);
    await world.condition(name, "ModelsReady", "False", /arcana.*Insufficient nvidia\.com\/gpu/s);
    const answer = await world.speak(name, { text: sentence, speaker: voiceOf("mist"), modelId: "mist" });
    expect(answer.status).toBe(200);
    await patchModels([mist(), arcana()]);
    await world.condition(name, "Ready", "True");
  });

  it("with an image that cannot be pulled says so within a minute and keeps serving", async () => {
    await patchModels([mist({ image: "registry.invalid/nothing:1" }), arcana()]);
    const found = await eventually(
      "a condition that names the image",
      async () => {
        const object = await world.deployment(name);
        const all = (object?.status?.conditions ?? []) as { type: string; status: string; message: string }[];
        return all.find((c) => c.message.includes("registry.invalid/nothing:1"));
      },
      { seen: async () => (await world.deployment(name))?.status?.conditions },
    );
    expect(found.message).toMatch(/pull/i);
    expect(
      (await world.speak(name, { text: sentence, speaker: voiceOf("mist"), modelId: "mist" })).status,
    ).toBe(200);
    await patchModels([mist(), arcana()]);
    await world.condition(name, "Ready", "True");
  });

  it("whose license expires keeps its pods, holds scale-ups, and says so", async () => {
    const pods = (await podNames("mist")).concat(await podNames("arcana")).sort();
    await world.license(-60, { graceDays: 0 });
    const found = await world.condition(name, "LicenseValid", "False");
    expect(found).toMatchObject({ reason: "Expired", message: expect.stringContaining("Renew") });
    await patchModels([mist({ replicas: 2 }), arcana()]);
    await sleep(5000);
    expect((await podNames("mist")).concat(await podNames("arcana")).sort()).toEqual(pods);
    expect((await kubectl.get("deployment", `${name}-mist`))?.spec.replicas).toBe(1);
    await world.license(30);
    await world.condition(name, "LicenseValid", "True");
    await eventually("the held scale-up", async () => (await poolReady("mist")) === 2);
    await patchModels([mist(), arcana()]);
    await world.condition(name, "Ready", "True");
  });

  it("with a forged license is told that the signature is wrong", async () => {
    await world.forgeLicense();
    const found = await world.condition(name, "LicenseValid", "False");
    expect(found).toMatchObject({ reason: "Invalid", message: expect.stringMatching(/signature/) });
    expect(await podNames("mist")).toHaveLength(1);
    await world.license(30);
    await world.condition(name, "LicenseValid", "True");
  });

  it("is gone with all its children when deleted in the foreground", async () => {
    await kubectl.do("delete", "ttsd", name, "--cascade=foreground", "--timeout=120s");
    await nothingLeft();
  });

  it("is gone with all its children when deleted in the background", async () => {
    await kubectl.apply(ttsDeployment(name));
    await eventually("pods to start", async () => (await podNames("mist")).length === 1);
    await kubectl.do("delete", "ttsd", name, "--timeout=60s");
    await nothingLeft();
  });
});

async function nothingLeft() {
  const kinds =
    "deployment,replicaset,pod,service,configmap,serviceaccount,role,rolebinding,ttsmp,secret,endpointslice";
  await eventually(
    "every child to be gone",
    async () => (await kubectl.list(kinds, `tts.svc.dev/deployment=${name}`)).length === 0,
    { seen: () => kubectl.do("get", kinds, "-l", `tts.svc.dev/deployment=${name}`) },
  );
}

async function patch(spec: object): Promise<void> {
  await kubectl.do("patch", "ttsd", name, "--type=merge", "-p", JSON.stringify({ spec }));
}

async function patchModels(models: object[]): Promise<void> {
  await patch({ models });
}

async function poolReady(pool: string): Promise<number> {
  return (await kubectl.get("ttsmp", `${name}-${pool}`))?.status?.readyReplicas ?? 0;
}

/** Pods of a pool that are not on their way out. */
async function podNames(pool: string): Promise<string[]> {
  const pods = await kubectl.list("pods", `tts.svc.dev/deployment=${name},tts.svc.dev/pool=${pool}`);
  return pods.filter((p) => !p.metadata.deletionTimestamp).map((p) => p.metadata.name);
}

function apiPods() {
  return kubectl.list("pods", `tts.svc.dev/deployment=${name},app.kubernetes.io/component=api`);
}

async function restarts(component: string): Promise<number> {
  const pods = await kubectl.list("pods", `tts.svc.dev/deployment=${name}`);
  const counts = pods
    .filter(
      (p) =>
        p.metadata.labels?.["tts.svc.dev/pool"] === component ||
        p.metadata.labels?.["app.kubernetes.io/component"] === component,
    )
    .flatMap((p) => (p.status.containerStatuses ?? []) as { restartCount: number }[])
    .map((s) => s.restartCount);
  return counts.reduce((a, b) => a + b, 0);
}

function voiceOf(modelId: string): string {
  return modelId === "arcana" ? "luna" : "alan";
}

const hang = `
  process._debugProcess(1);
  await new Promise((r) => setTimeout(r, 1000));
  const [target] = await (await fetch("http://127.0.0.1:9229/json")).json();
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((r) => socket.addEventListener("open", r));
  socket.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: "while (true) {}" } }));
  await new Promise((r) => setTimeout(r, 500));
  process.exit(0);`;
