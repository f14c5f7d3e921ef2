import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findVoice, voicesOf } from "../../../../config/contract/voices.ts";
import { ascending, quantile } from "../../../../server/bench/quantiles.ts";
import type { WordTimestamp } from "../../../../server/contract/speech.ts";
import { Engines } from "../../../../server/engine/engines.ts";
import { openEspeak } from "../../../../server/engine/espeak/engine.ts";
import { speak } from "../../../../server/model/speak.ts";
import { prepareSpeech } from "../../../../server/model/synthesis.ts";
import { align, choose, recognizeEach, type Spoken } from "../../../support/audio/recognizer.ts";
import { englishSentences } from "../../../support/audio/texts.ts";
import { turnOf } from "../../../support/seed.ts";
import { plainInvocation } from "../../../support/server/model-tier.ts";
import {
  overTelephone,
  type SpeakingServer,
  startSpeakingServer,
  type TimedAnswer,
} from "../../../support/server/whole-server.ts";

let server: SpeakingServer;
beforeAll(async () => {
  server = await startSpeakingServer();
});
afterAll(() => server.stop());

/** These tests use some voices and sentences. `make test-speech` tests every voice with all sentences. */
const someSentences = englishSentences.slice(0, 8);
const fewSentences = englishSentences.slice(0, 3);
/** A third of the English voices in turn, because recognition takes most of the time of this file. */
const turns = 3;
const mistVoices = voicesOf("mist")
  .filter(({ language }) => language === "eng")
  .filter((_voice, i) => i % turns === turnOf(turns));

function speakAll(speaker: string, sentences: readonly string[]): Promise<Spoken[]> {
  return Promise.all(
    sentences.map(async (sentence) => ({ ...(await server.speak({ speaker, text: sentence })), sentence })),
  );
}

test("a recognizer understands the English voices of mist", async () => {
  const speeches: Spoken[][] = [];
  for (const { id } of mistVoices) speeches.push(await speakAll(id, fewSentences));
  for (const [i, { wordErrorRate }] of (await recognizeEach(speeches)).entries()) {
    expect(wordErrorRate, mistVoices[i]?.id).toBeLessThanOrEqual(0.3);
  }
});

describe("the default voice of English", () => {
  test("is understood by a recognizer, also as mulaw over a telephone, and not if it is reversed", async () => {
    const spoken = await speakAll("alan", someSentences);
    const telephone = await Promise.all(
      someSentences.slice(0, 4).map(async (sentence) => ({
        ...(await overTelephone(server.api, { speaker: "alan", text: sentence })),
        sentence,
      })),
    );
    const backwards = spoken.slice(0, 1).map((one) => ({ ...one, samples: one.samples.toReversed() }));
    const [plain, mulaw, nothing] = await recognizeEach([spoken, telephone, backwards]);
    expect(plain?.wordErrorRate).toBeLessThanOrEqual(0.15);
    expect(mulaw?.wordErrorRate).toBeLessThanOrEqual(0.25);
    expect(nothing?.wordErrorRate).toBeGreaterThanOrEqual(0.8);
  });
});

test("a recognizer that chooses among the sentences understands eSpeak NG's English", async () => {
  const espeak = await openEspeak({ processes: 1, log: { info: () => undefined, warn: () => undefined } });
  try {
    const engines = new Engines(new Map([["espeak", espeak]]), []); // This simulates a machine without Flite.
    const sentences = englishSentences.slice(0, 12);
    const right = await choose(await Promise.all(sentences.map((text) => speakBy(engines, text))));
    expect(right.filter(Boolean).length).toBeGreaterThanOrEqual(6); // The recognizer may choose a sentence by chance.
  } finally {
    await espeak.close();
  }
});

async function speakBy(engines: Engines, text: string): Promise<Spoken> {
  const voice = findVoice("susan");
  if (!voice) throw new Error("the catalogue has no voice susan");
  const speech = prepareSpeech({ ...plainInvocation, text }, engines.speakerFor(voice, "mist"));
  const samples: number[] = [];
  for await (const frame of speak(speech, new AbortController().signal)) samples.push(...frame.samples);
  return { samples: Int16Array.from(samples), rate: speech.speaker.engine.rate, sentence: text };
}

describe("word timestamps of English", () => {
  const recordings = new Map<string, { answer: TimedAnswer; aligned: WordTimestamp[] }[]>();
  beforeAll(async () => {
    const answers: TimedAnswer[] = [];
    for (const { id: speaker } of mistVoices) {
      for (const text of fewSentences) answers.push(await server.speakTimed({ speaker, text }));
    }
    const sentences = mistVoices.flatMap(() => fewSentences);
    const aligned = await align(
      answers.map(({ samples, rate }, i) => ({ samples, rate, sentence: sentences[i] ?? "" })),
    );
    for (const [i, answer] of answers.entries()) {
      const { id = "" } = mistVoices[Math.floor(i / fewSentences.length)] ?? {};
      recordings.set(id, [...(recordings.get(id) ?? []), { answer, aligned: aligned[i] ?? [] }]);
    }
  });

  test.each(mistVoices.map(({ id }) => id))("of %s match a forced alignment of the words", (speaker) => {
    const errors = { start: [] as number[], end: [] as number[] };
    for (const { answer, aligned } of recordings.get(speaker) ?? []) {
      expect(aligned).toHaveLength(answer.words.length);
      for (const [at, word] of aligned.entries()) {
        errors.start.push((answer.words[at]?.start ?? 0) - word.start);
        errors.end.push((answer.words[at]?.end ?? 0) - word.end);
      }
    }
    console.info(speaker, JSON.stringify([errorsOf(errors.start), errorsOf(errors.end)]));
    expect(errors.start.length).toBeGreaterThan(10);
    expect(Math.abs(errorsOf(errors.start).medianMs)).toBeLessThanOrEqual(30);
    expect(errorsOf(errors.start).p90Ms).toBeLessThanOrEqual(60);
  });
});

function errorsOf(seconds: readonly number[]) {
  const ms = ascending(seconds.map((second) => second * 1000));
  return { medianMs: quantile(ms, 0.5), p90Ms: quantile(ascending(ms.map(Math.abs)), 0.9) };
}
