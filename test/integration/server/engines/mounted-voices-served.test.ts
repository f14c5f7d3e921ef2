import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { modelTier } from "../../../support/server/model-tier.ts";
import { VoicesFolder } from "../../../support/voices/folder.ts";

let folder: VoicesFolder;
let tiers: RunningTier[];
let api: TestApi;

/** Only one of the two replicas has the folder, as during a rollout. */
beforeAll(async () => {
  folder = new VoicesFolder();
  folder.piper("en_GB-nora-low");
  const tokens = { kind: "fixed", tokens: ["internal-token"] } as const;
  tiers = await Promise.all([
    modelTier({
      tokens,
      voices: { folder: folder.path, providers: ["cpu"], processes: 1, intervalMs: 50 },
    }),
    modelTier({ tokens }),
  ]);
  const route = tiers.map(({ url }, i) => ({ service: url, pool: `mist-${i}`, weight: 50, idle: false }));
  api = await startTestApi({ mist: route, mistv2: route }, { timing: { voicesIntervalMs: 100 } });
});
afterAll(async () => {
  await api.stop();
  await Promise.all(tiers.map((tier) => tier.stop()));
  folder.delete();
});

const listed = async () => {
  const answer = await fetch(`${api.url}/v1/voices`);
  const { voices } = (await answer.json()) as { voices: { id: string }[] };
  return voices.find(({ id }) => id === "en_gb-nora-low");
};
const speak = (more: object = {}) =>
  api.post(
    { speaker: "en_gb-nora-low", modelId: "mistv2", text: "Hello there. How are you?", ...more },
    { accept: "audio/pcm" },
  );

test("a mounted voice is listed, and the replica that has it serves its requests", async () => {
  await eventually("the voice in the list", async () => (await listed()) !== undefined);
  expect(await listed()).toEqual({
    id: "en_gb-nora-low",
    models: ["mist", "mistv2"],
    language: "eng",
    gender: "neutral",
    license: "not stated",
    engine: "piper",
  });
  for (let request = 0; request < 8; request++) {
    const answer = await speak({ samplingRate: 16_000, lang: "en" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-voice")).toBe("en_gb-nora-low");
    expect(answer.headers.get("x-voice-engine")).toBe("piper");
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(16_000);
  }
  const events = await api.post(
    { speaker: "en_gb-nora-low", text: "I paid $5 there.", audioFormat: "pcm" },
    { accept: "text/event-stream" },
  );
  expect(/"words":(\[.*?\])/.exec(await events.text())?.[1]).toBe('["I","paid","$5","there"]');
});

test("the model tier lists its mounted voices and their problems, and has metrics for both", async () => {
  folder.write("broken.onnx", "no model");
  const tier = tiers[0]?.url;
  const list = async () => (await (await fetch(`${tier}/voices`)).json()) as { problems: unknown[] };
  await eventually("the problem in the list", async () => (await list()).problems.length > 0);
  expect(await list()).toMatchObject({
    voices: [{ id: "en_gb-nora-low" }],
    problems: [{ file: "broken.onnx.json", message: expect.stringMatching(/cannot be read/) }],
  });
  const metrics = await (await fetch(`${tier}/metrics`)).text();
  expect(metrics).toMatch(/^svc_tts_mounted_voices 1$/m);
  expect(metrics).toMatch(/^svc_tts_mounted_voice_problems 1$/m);
  expect((await fetch(`${tier}/ready`)).status).toBe(200);
});

test("a removed voice is no longer served, and an added voice is served", async () => {
  folder.piper("de_DE-otto-low", { language: "de_DE", espeak: "de" });
  folder.remove("en_GB-nora-low.onnx", "en_GB-nora-low.onnx.json");
  await eventually("the voice to disappear from the list", async () => (await listed()) === undefined);
  expect((await speak()).status).toBe(400);
  await eventually(
    "a successful request with the added voice",
    async () => (await speak({ speaker: "de_de-otto-low", text: "Guten Tag." })).status === 200,
  );
});
