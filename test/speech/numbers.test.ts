/**
 * Synthesizes sentences with numbers, transcribes them with a speech recognizer, and finds the numbers in the
 * transcripts. NUMBERS=deu,fra selects languages. Natural voices are installed into the cache on first use.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { modelsCommands } from "../../server/cli/models.ts";
import type { RunningTier } from "../../server/model/tier.ts";
import { hasNumbers, type NumberLanguage, numberLanguages } from "../support/audio/spoken-digits.ts";
import { transcribe } from "../support/audio/transcriber.ts";
import { eventually } from "../support/eventually.ts";
import { corpusSentences } from "../support/normalize-corpus.ts";
import { runInProcess } from "../support/server/command-line.ts";
import { hear, modelTier } from "../support/server/model-tier.ts";

/**
 * The voices, and the lowest number of sentences whose numbers the recognizer must hear. German has no natural
 * voice.
 */
const cases: Readonly<Record<NumberLanguage, { iso: string; speaker: string; least: number }>> = {
  eng: { iso: "en", speaker: "af_heart", least: 26 },
  deu: { iso: "de", speaker: "jonas", least: 7 },
  fra: { iso: "fr", speaker: "ff_siwis", least: 18 },
  spa: { iso: "es", speaker: "ef_dora", least: 25 },
};

const sentencesPerLanguage = 30;
const languages = numberLanguages.filter((id) => (process.env.NUMBERS ?? id).split(",").includes(id));
const models = join(homedir(), ".cache", "svc-tts", "models");

let tier: RunningTier;
beforeAll(async () => {
  const words = ["models", "get", "kokoro-82m", "--into", models];
  const { code, out, err } = await runInProcess(modelsCommands, words, { env: process.env });
  if (code !== 0) throw new Error(`svc-tts models get exited with ${code}: ${out} ${err}`);
  tier = await modelTier({ voices: { installed: models, providers: ["cpu"] } });
  // The tier is ready before it has loaded the installed models.
  await eventually("the natural voices", async () => {
    const { voices } = (await (await fetch(`${tier.url}/voices`)).json()) as { voices: { id: string }[] };
    return voices.some(({ id }) => id === cases.eng.speaker);
  });
});
afterAll(() => tier.stop());

/**
 * Returns sentences from the whole corpus of a language. Fractions and powers are omitted, because a recognizer
 * writes them in many ways.
 */
function sentencesWithNumbers(language: NumberLanguage) {
  const all = corpusSentences(language).filter(
    ([written]) => /\d/u.test(written) && !/[½¼¾⁻⁰-⁹√]|\d\/\d/u.test(written),
  );
  const stride = all.length / sentencesPerLanguage;
  return all.filter((_, i) => Math.floor(i / stride) !== Math.floor((i - 1) / stride));
}

test.each(languages)("a recognizer hears the numbers of thirty sentences in %s", async (language) => {
  const { iso, speaker, least } = cases[language];
  const sentences = sentencesWithNumbers(language);
  expect(sentences.length).toBe(sentencesPerLanguage);
  const recordings = [];
  for (const [text] of sentences) recordings.push(await hear(tier.url, { speaker, lang: language, text }));
  const transcripts = await transcribe(recordings, iso);
  const misheard = sentences.flatMap(([written, spoken], i) =>
    hasNumbers(transcripts[i] ?? "", spoken, language) ? [] : [`${written} | ${transcripts[i]}`],
  );
  const heard = sentences.length - misheard.length;
  console.info(
    `${language}, voice ${speaker}: ${heard} of ${sentences.length}; not heard:\n${misheard.join("\n")}`,
  );
  expect(heard).toBeGreaterThanOrEqual(least);
});
