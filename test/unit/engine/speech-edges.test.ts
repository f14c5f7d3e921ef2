import { describe, expect, test } from "vitest";
import { exactBorders, type SpelledLine } from "../../../server/engine/neural/neural-model.ts";
import { placeSpeech } from "../../../server/engine/neural/speech-edges.ts";

const rate = 1000;
const margin = 40;
const kokoro = { shiftSeconds: -0.06, byLevel: true };
const line: SpelledLine = { ids: [0, 5, 6, 9, 0], tokens: [-1, 0, 1, -1, -1] };

/** Returns audible sound between two samples, and inaudible noise before and after it. */
function sound(length: number, from: number, to: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => (i >= from && i < to ? 0.5 : 0.002) * (i % 2 ? 1 : -1));
}

describe("placeSpeech", () => {
  test("uses the exact durations, with a margin around the speech", () => {
    const samples = [300, 200, 200, 100, 200];
    const placed = placeSpeech(line, { audio: sound(1000, 0, 1000), samples }, exactBorders, rate);
    expect(placed).toEqual({
      from: 300 - margin,
      to: 700 + margin,
      fade: 0,
      words: [
        { token: 0, from: 300, to: 500 },
        { token: 1, from: 500, to: 700 },
      ],
    });
  });

  test("shifts the borders of Kokoro, and removes silence from the end of the last word", () => {
    const samples = [300, 200, 400, 100, 200];
    const placed = placeSpeech(line, { audio: sound(1200, 260, 600), samples }, kokoro, rate);
    expect(placed).toEqual({
      from: 240 - margin,
      to: 600 + margin,
      fade: margin,
      words: [
        { token: 0, from: 240, to: 440 },
        { token: 1, from: 440, to: 600 },
      ],
    });
  });

  test.each([
    { what: "keeps a soft onset", begins: 180, from: 180 - margin },
    { what: "keeps at most 150 ms of noise before the first word", begins: 0, from: 240 - 150 - margin },
    { what: "does not move the start for a late onset", begins: 320, from: 240 - margin },
  ])("$what", ({ begins, from }) => {
    const samples = [300, 200, 200, 100, 200];
    const placed = placeSpeech(line, { audio: sound(1000, begins, 640), samples }, kokoro, rate);
    expect(placed?.from).toBe(Math.max(0, from));
    expect(placed?.words[0]?.from).toBe(240);
  });

  test("keeps 50 ms of a sound that continues after the last word", () => {
    const samples = [100, 200, 200, 100, 400];
    const placed = placeSpeech(line, { audio: sound(1000, 100, 1000), samples }, kokoro, rate);
    expect(placed?.to).toBe(440 + 50 + margin);
    expect(placed?.words.at(-1)?.to).toBe(440);
  });

  test("keeps the words of silent audio", () => {
    const samples = [100, 200, 200, 100, 400];
    const placed = placeSpeech(line, { audio: new Float32Array(1000), samples }, kokoro, rate);
    expect(placed).toMatchObject({ from: 0, words: [{ token: 0 }, { token: 1, to: 440 }] });
  });

  test("returns undefined for a line without words", () => {
    const silent = { ids: [0, 0], tokens: [-1, -1] };
    expect(placeSpeech(silent, { audio: sound(100, 0, 100), samples: [50, 50] }, kokoro, rate)).toBe(
      undefined,
    );
  });
});
