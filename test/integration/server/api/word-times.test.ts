import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { languages, type Voice, voices } from "../../../../config/contract/voices.ts";
import { longTexts } from "../../../support/audio/texts.ts";
import { type SpeakingServer, startSpeakingServer } from "../../../support/server/whole-server.ts";

let server: SpeakingServer;
beforeAll(async () => {
  server = await startSpeakingServer();
});
afterAll(() => server.stop());

const pauseMs = 300;

/** Returns four groups of three words in the language. The text has a pause between two groups. */
function grouped(language: string): string[][] {
  const words = (longTexts[language]?.[0] ?? "").split(" ").map((word) => word.replace(/[.,।]$/u, ""));
  return [0, 3, 6, 9].map((at) => words.slice(at, at + 3));
}

function voiceOf(language: string): Voice {
  const voice = voices.find((one) => one.language === language && one.models.includes("mist"));
  if (!voice) throw new Error(`mist has no voice of the language ${language}`);
  return voice;
}

describe.each(Object.keys(languages))("in %s", (language) => {
  const groups = grouped(language);
  const speak = (separator: string) =>
    server.speakTimed({
      speaker: voiceOf(language).id,
      text: groups.map((words) => words.join(" ")).join(separator),
      pauseBetweenBrackets: true,
    });

  test("word timestamps match the start and end of the sounds", async () => {
    const { samples, rate, words } = await speak(` <${pauseMs}> `);
    expect(words.map(({ word }) => word)).toEqual(groups.flat());
    const sounds = soundsBetweenPauses(samples, rate);
    expect(sounds).toHaveLength(groups.length);
    for (const [i, sound] of sounds.entries()) {
      const [first, , last] = words.slice(3 * i, 3 * i + 3);
      expect(Math.abs((first?.start ?? 0) - sound.start)).toBeLessThan(0.04);
      expect(Math.abs((last?.end ?? 0) - sound.end)).toBeLessThan(0.1);
    }
    for (const [i, { start, end }] of words.entries()) {
      expect(end).toBeGreaterThan(start);
      expect(start).toBeGreaterThanOrEqual((words[i - 1]?.end ?? 0) - 0.001);
      for (const time of [start, end]) expect(String(time)).toMatch(/^\d+(?:\.\d{1,3})?$/);
    }
  });

  test("a pause has the exact number of samples", async () => {
    const without = await speak(" <0> ");
    for (const ms of [1, 1234]) {
      const { samples, rate } = await speak(` <${ms}> `);
      const expected = ((groups.length - 1) * ms * rate) / 1000;
      // Each pause is rounded to whole samples.
      expect(Math.abs(samples.length - without.samples.length - expected)).toBeLessThanOrEqual(groups.length);
    }
  });
});

interface Span {
  /** The start and end are in seconds. */
  readonly start: number;
  readonly end: number;
}

const windowSeconds = 0.005;

/**
 * Returns the sounds between the pauses. A sound starts and ends with the windows that are within 40 dB of
 * its loudest window.
 */
function soundsBetweenPauses(samples: Int16Array, rate: number): Span[] {
  const power = powers(samples, Math.round(windowSeconds * rate));
  const silent = Math.round((0.9 * pauseMs) / 1000 / windowSeconds);
  const spans: { from: number; to: number }[] = [];
  for (const [i, value] of power.entries()) {
    const last = spans.at(-1);
    if (value === 0) continue;
    if (last && i - last.to < silent) last.to = i;
    else spans.push({ from: i, to: i });
  }
  return spans.map(({ from, to }) => {
    const own = power.slice(from, to + 1);
    const audible = (value: number) => value > Math.max(...own) / 10_000;
    const seconds = (window: number) => (window * Math.round(windowSeconds * rate)) / rate;
    return {
      start: seconds(from + own.findIndex(audible)),
      end: seconds(from + own.findLastIndex(audible) + 1),
    };
  });
}

function powers(samples: Int16Array, window: number): number[] {
  return Array.from({ length: Math.ceil(samples.length / window) }, (_, i) =>
    samples.subarray(i * window, (i + 1) * window).reduce((sum, sample) => sum + sample * sample, 0),
  );
}
