/**
 * Runs a speech recognizer on every English voice and every sentence.
 * test/integration/server/api/recognition.test.ts tests a part of them.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FliteVoice, type Voice, voices } from "../../config/contract/voices.ts";
import { recognize, type Spoken } from "../support/audio/recognizer.ts";
import { englishSentences } from "../support/audio/texts.ts";
import { overTelephone, type SpeakingServer, startSpeakingServer } from "../support/server/whole-server.ts";

let server: SpeakingServer;
beforeAll(async () => {
  server = await startSpeakingServer();
});
afterAll(() => server.stop());

/**
 * The highest word error rates of Flite's voices: as WAV, and as 8 kHz mulaw. The limit of slt is higher: a
 * recognizer misses 29 to 41 % of its words as mulaw, with any encoder.
 */
const gates: Readonly<Record<FliteVoice["voice"], readonly [plain: number, telephone: number]>> = {
  awb: [0.15, 0.25],
  rms: [0.15, 0.25],
  slt: [0.15, 0.45],
  kal16: [0.15, 0.35],
};
/**
 * The highest word error rates of arcana's voices, which are modified copies of Flite's voices: a quarter of
 * the words, and as mulaw 10 to 15 percentage points more than Flite's voices.
 */
const arcanaGates: typeof gates = {
  awb: [0.25, 0.4],
  rms: [0.25, 0.35],
  slt: [0.25, 0.55],
  kal16: [0.25, 0.45],
};

function gatesOf({ id, engine, models }: Voice): readonly [plain: number, telephone: number] {
  if (engine.kind !== "flite")
    throw new Error(`voice ${id} has no limit: its engine is ${engine.kind}, not flite`);
  return (models.includes("arcana") ? arcanaGates : gates)[engine.voice];
}

const english = voices.filter(({ language }) => language === "eng");

function bodyOf({ id, models }: Voice, text: string) {
  return { speaker: id, modelId: models[0], text, temperature: 0 };
}

describe.each(english.map((voice) => [voice.id, voice] as const))("%s", (id, voice) => {
  const [plain, telephone] = gatesOf(voice);

  test("is understood by a recognizer", async () => {
    const spoken: Spoken[] = [];
    for (const sentence of englishSentences) {
      spoken.push({ ...(await server.speak(bodyOf(voice, sentence))), sentence });
    }
    const { wordErrorRate } = await recognize(spoken);
    console.info(`${id}: ${(100 * wordErrorRate).toFixed(1)} %`);
    expect(wordErrorRate).toBeLessThanOrEqual(plain);
  });

  test("is understood by a recognizer over a telephone", async () => {
    const spoken: Spoken[] = [];
    for (const sentence of englishSentences) {
      spoken.push({ ...(await overTelephone(server.api, bodyOf(voice, sentence))), sentence });
    }
    const { wordErrorRate } = await recognize(spoken);
    console.info(`${id} over a telephone: ${(100 * wordErrorRate).toFixed(1)} %`);
    expect(wordErrorRate).toBeLessThanOrEqual(telephone);
  });
});

test("a recognizer understands mistv2 at least as well as mist", async () => {
  const errorRates = { mist: 0, mistv2: 0 };
  for (const modelId of ["mist", "mistv2"] as const) {
    for (const speaker of ["alan", "robert", "karl"]) {
      const spoken: Spoken[] = [];
      for (const sentence of englishSentences) {
        spoken.push({ ...(await server.speak({ speaker, modelId, text: sentence })), sentence });
      }
      errorRates[modelId] += (await recognize(spoken)).wordErrorRate / 3;
    }
  }
  expect(errorRates.mistv2).toBeLessThanOrEqual(errorRates.mist);
});
