/** Runs a speech recognizer on every English voice and every sentence. `make test` runs a part of it. */
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
 * The highest word error rate: plain, and as 8 kHz mulaw. The limits are for the original speakers of the
 * engines: a recognizer misses 29 to 41 % of the words of Flite's slt as mulaw, with any encoder.
 */
const gates: Readonly<Record<FliteVoice["voice"], readonly [plain: number, telephone: number]>> = {
  awb: [0.15, 0.25],
  rms: [0.15, 0.25],
  slt: [0.15, 0.45],
  kal16: [0.15, 0.35],
};
/**
 * Limits of arcana's voices, which are modified copies: a quarter of the words, and as mulaw 10 to 15
 * percentage points more than the originals.
 */
const arcanaGates: typeof gates = {
  awb: [0.25, 0.4],
  rms: [0.25, 0.35],
  slt: [0.25, 0.55],
  kal16: [0.25, 0.45],
};

function gatesOf({ engine, models }: Voice): readonly [plain: number, telephone: number] {
  if (engine.kind !== "flite") throw new Error("an English voice that is not Flite's has no gate");
  return (models.includes("arcana") ? arcanaGates : gates)[engine.voice];
}

const english = voices.filter(({ language }) => language === "eng");

function bodyOf({ id, models }: Voice, text: string) {
  return { speaker: id, modelId: models[0], text, temperature: 0 };
}

describe.each(english.map((voice) => [voice.id, voice] as const))("%s", (id, voice) => {
  const [plain, telephone] = gatesOf(voice);

  test("is understood", async () => {
    const spoken: Spoken[] = [];
    for (const sentence of englishSentences) {
      spoken.push({ ...(await server.speak(bodyOf(voice, sentence))), sentence });
    }
    const { wordErrorRate } = await recognize(spoken);
    console.info(`${id}: ${(100 * wordErrorRate).toFixed(1)} %`);
    expect(wordErrorRate).toBeLessThanOrEqual(plain);
  });

  test("is understood over a telephone", async () => {
    const spoken: Spoken[] = [];
    for (const sentence of englishSentences) {
      spoken.push({ ...(await overTelephone(server.api, bodyOf(voice, sentence))), sentence });
    }
    const { wordErrorRate } = await recognize(spoken);
    console.info(`${id} over a telephone: ${(100 * wordErrorRate).toFixed(1)} %`);
    expect(wordErrorRate).toBeLessThanOrEqual(telephone);
  });
});

test("mistv2 is understood at least as well as mist", async () => {
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
