/**
 * Tests the main task on a real cluster: apply a `TtsDeployment`, synthesize speech, inspect it, and delete
 * it.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { readWav } from "../support/audio/audio.ts";
import { recognize } from "../support/audio/recognizer.ts";
import { Deployed } from "../support/cluster/deployed.ts";
import { arcana, licenseSecret, mist, ttsDeployment, World } from "../support/cluster/world.ts";
import { eventually } from "../support/eventually.ts";

const sentence = "We will meet at the station tomorrow morning at nine.";
const name = "voice";
const world = new World(inject("cluster"), "main");
const { kubectl } = world;
const deployed = new Deployed(world, name);

beforeAll(() => world.open());
afterAll(() => world.close());

describe("a TtsDeployment", () => {
  it("starts no pod without a license, and its condition names the missing Secret", async () => {
    await kubectl.apply(ttsDeployment(name));
    const found = await world.condition(name, "LicenseValid", "False");
    expect(found).toMatchObject({ reason: "Missing", message: expect.stringContaining(licenseSecret) });
    expect(await kubectl.list("pods", `tts.svc.dev/deployment=${name}`)).toEqual([]);
  });

  it("becomes ready when the license exists", async () => {
    await world.license(30);
    await world.condition(name, "Ready", "True");
    expect(await kubectl.list("ttsmp")).toHaveLength(2);
  });

  it("shows its state in the columns of kubectl", async () => {
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
    "synthesizes a sentence with %s that a recognizer understands",
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

  it.each(["mist", "arcana"])("streams WAV with %s", async (modelId) => {
    const answer = await world.speak(name, { text: sentence, speaker: voiceOf(modelId), modelId });
    expect(answer).toMatchObject({ status: 200, type: expect.stringContaining("audio/wav") });
    expect(answer.body.subarray(0, 4).toString()).toBe("RIFF");
    expect(answer.body.length).toBeGreaterThan(44 + 2 * 16_000);
  });

  it("rejects an invalid request with problem+json", async () => {
    const answer = await world.speak(name, { text: sentence, speaker: "unknown" }, "audio/pcm");
    expect(answer).toMatchObject({ status: 400, type: expect.stringContaining("application/problem+json") });
    expect(JSON.parse(answer.body.toString())).toMatchObject({ errors: [{ pointer: "/speaker" }] });
  });

  it("supports kubectl exec and kubectl logs, and logs no text and no key", async () => {
    const [pod = ""] = await deployed.pods("mist");
    const node = await kubectl.exec(pod, "node", "--version");
    expect(node).toMatch(/^v24\./);
    const logs = await kubectl.do("logs", "-l", `tts.svc.dev/deployment=${name}`, "--tail=-1", "--prefix");
    expect(logs.length).toBeGreaterThan(100);
    expect(logs).not.toMatch(/tomorrow morning|svc_[A-Za-z0-9]{10}/);
  });

  it("runs its containers as non-root with a read-only root file system, within Pod Security restricted", async () => {
    const pods = await kubectl.list("pods", `tts.svc.dev/deployment=${name}`);
    expect(pods).toHaveLength(4);
    for (const pod of pods) {
      for (const container of pod.spec.containers) {
        expect(container.securityContext).toMatchObject({
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
        });
      }
      const write = 'require("node:fs").writeFileSync("/x", "")';
      const attempt = await kubectl.try("exec", pod.metadata.name, "--", "node", "-e", write);
      expect(attempt.stderr).toMatch(/EROFS|EACCES/);
    }
  });

  it("is rejected by the API server if it is invalid, with the field and the rule", async () => {
    const bad = await kubectl.tryApply(ttsDeployment("bad", { models: [mist(), mist()] }));
    expect(bad.code).not.toBe(0);
    expect(bad.stderr).toMatch(/spec\.models/);
    const worse = await kubectl.tryApply(
      ttsDeployment("bad", { models: [mist({ drain: { maxStreamSeconds: 4000 } })] }),
    );
    expect(worse.stderr).toMatch(/drain\.maxStreamSeconds.*3600/s);
  });

  it("recreates a deleted child", async () => {
    const before = await kubectl.get("service", `${name}-api`);
    await kubectl.do("delete", "service", `${name}-api`, "--wait=false");
    await eventually("the operator to recreate the Service", async () => {
      const now = await kubectl.get("service", `${name}-api`);
      return now !== undefined && now.metadata.uid !== before?.metadata.uid;
    });
    await world.condition(name, "Ready", "True");
  });

  it("is deleted with all its children by a foreground deletion", async () => {
    await kubectl.do("delete", "ttsd", name, "--cascade=foreground", "--timeout=300s");
    await allChildrenDeleted();
  });

  it("is deleted with all its children by a background deletion", async () => {
    await kubectl.apply(ttsDeployment(name, { models: [mist(), arcana()] }));
    await eventually("pods to start", async () => (await deployed.pods("mist")).length === 1);
    await kubectl.do("delete", "ttsd", name, "--timeout=300s");
    await allChildrenDeleted();
  });
});

async function allChildrenDeleted() {
  const kinds =
    "deployment,replicaset,pod,service,configmap,serviceaccount,role,rolebinding,ttsmp,secret,endpointslice";
  await eventually(
    "the deletion of every child",
    async () => (await kubectl.list(kinds, `tts.svc.dev/deployment=${name}`)).length === 0,
    { seen: () => kubectl.do("get", kinds, "-l", `tts.svc.dev/deployment=${name}`) },
  );
}

function voiceOf(modelId: string): string {
  return modelId === "arcana" ? "luna" : "alan";
}
