/** Every English voice, every sentence: what a recognizer makes of them. `make test` hears a part of it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Voice, voices } from "../../config/contract/voices.ts";
import { recognize, type Spoken } from "../support/recognizer.ts";
import { type SpeakingServer, startSpeakingServer } from "../support/speaking-server.ts";
import { overTelephone } from "../support/telephone.ts";
import { englishSentences } from "../support/texts.ts";

let server: SpeakingServer;
beforeAll(async () => {
  server = await startSpeakingServer();
});
afterAll(() => server.stop());

/** Most wrong words per word: plain, and as 8 kHz mulaw. The recognizer knows ordinary voices best. */
const gates: Readonly<Record<string, readonly [plain: number, telephone: number]>> = {
  alan: [0.15, 0.25],
  robert: [0.15, 0.25],
  atrium: [0.15, 0.25],
  sirius: [0.15, 0.25],
  susan: [0.15, 0.45],
};
const otherGates = [0.35, 0.55] as const;

const english = voices.filter(({ language }) => language === "eng");

function bodyOf({ id, models }: Voice, text: string) {
  return { speaker: id, modelId: models[0], text, temperature: 0 };
}

describe.each(english.map((voice) => [voice.id, voice] as const))("%s", (id, voice) => {
  const [plain, telephone] = gates[id] ?? otherGates;

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
