import { describe, expect, test } from "vitest";
import type { Token, TokenTimestamp } from "../../../server/contract/speech.ts";
import {
  exactBorders,
  Line,
  melodyMarks,
  type NeuralModel,
  neuralSpeedRange,
  type SpelledLine,
  type WindowedOutput,
} from "../../../server/engine/neural/neural-model.ts";
import { neuralSynthesizer } from "../../../server/engine/neural/synthesize.ts";
import { withinSpeedRange } from "../../../server/engine/runtime/speed-range.ts";

const samplesOfId = 100;

/**
 * A model that generates a tenth of a second of audio for each symbol. Its symbols are lowercase letters,
 * spaces and punctuation marks.
 */
class LetterModel implements NeuralModel {
  readonly rate = 1000;
  readonly reach = neuralSpeedRange;
  readonly borders = exactBorders;
  readonly maxSymbols: number;
  /** The number of samples of each window. The model has no windows by default. */
  readonly window: number | undefined;
  /** The lines that the model has synthesized. */
  readonly lines: string[] = [];

  constructor(maxSymbols: number, window?: number) {
    this.maxSymbols = maxSymbols;
    this.window = window;
  }

  spell(words: Parameters<NeuralModel["spell"]>[0]): SpelledLine {
    const line = new Line();
    for (const [place, { token, sounds, after }] of words.entries()) {
      if (place > 0) line.add([32], -1);
      for (const letter of sounds.join("").replace(/[^a-z]/g, "")) line.add([letter.charCodeAt(0)], token);
      for (const mark of melodyMarks(after)) line.add([mark.charCodeAt(0)], -1);
    }
    return line;
  }

  async speak({ ids }: SpelledLine) {
    this.lines.push(String.fromCharCode(...ids));
    return {
      audio: new Float32Array(ids.length * samplesOfId).fill(0.5),
      samples: ids.map(() => samplesOfId),
    };
  }

  async speakInWindows(line: SpelledLine): Promise<WindowedOutput | undefined> {
    const { window } = this;
    if (window === undefined) return undefined;
    const { audio, samples } = await this.speak(line);
    return {
      samples,
      length: audio.length,
      async *audio({ from, to }) {
        for (let at = from; at < to; at += window) yield { at, audio: audio.subarray(at, at + window) };
      },
    };
  }
}

async function synthesize(text: string, model: LetterModel, inWindows = false) {
  return synthesizeUntil(text, model, { inWindows, piecesUntilStop: Number.POSITIVE_INFINITY });
}

async function synthesizeUntil(
  text: string,
  model: LetterModel,
  { inWindows, piecesUntilStop }: { readonly inWindows: boolean; readonly piecesUntilStop: number },
) {
  const tokens = text.split(" ").map((written): Token => {
    const [, word = "", after = ""] = /^(.*?)([.,!?]*)$/.exec(written) ?? [];
    return { text: word, before: "", after, stretch: 1, sounds: [...word] };
  });
  const times: TokenTimestamp[] = [];
  const pieces: Int16Array[] = [];
  const sink = {
    audio: (piece: Int16Array) => {
      pieces.push(piece);
      return pieces.length < piecesUntilStop;
    },
    times: (timestamps: readonly TokenTimestamp[]) => {
      times.push(...timestamps);
      return true;
    },
    isStopped: () => false,
  };
  const voice = { kind: "neural", speaker: 0 } as const;
  await neuralSynthesizer(model)({ voice, tokens, stretch: 1, inWindows }, sink);
  const samples = pieces.reduce((sum, { length }) => sum + length, 0);
  return { lines: model.lines, times, samples, pieces };
}

describe("a text that is too long for the model", () => {
  test("is split at the last end of a phrase", async () => {
    const { lines, times } = await synthesize("one, two three, four five six.", new LetterModel(22));
    expect(lines).toEqual(["one, two three,", "four five six."]);
    expect(times.map(({ token }) => token)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("is split between two words if it has only one phrase", async () => {
    const { lines } = await synthesize("aaaa bbbb cccc dddd", new LetterModel(9));
    expect(lines).toEqual(["aaaa bbbb", "cccc dddd"]);
  });

  test("is split inside a word that is too long for the model, and keeps all letters", async () => {
    const { lines, times } = await synthesize("abcdefghijklmnop.", new LetterModel(6));
    expect(lines.join("")).toBe("abcdefghijklmnop.");
    expect(new Set(times.map(({ token }) => token))).toEqual(new Set([0]));
  });

  test("has a pause where it was split at the end of a phrase, and its word timestamps include the pause", async () => {
    const split = await synthesize("one, two.", new LetterModel(5));
    expect(split.lines).toEqual(["one,", "two."]);
    const [first, second] = split.times;
    expect((second?.start ?? 0) - (first?.end ?? 0)).toBeGreaterThan(0.13);
    expect(split.times.at(-1)?.end).toBeLessThanOrEqual(split.samples / 1000);
  });
});

test("a text without symbols of the model is omitted, and the model is not called", async () => {
  const { lines, times, samples } = await synthesize("ЖЖ", new LetterModel(50));
  expect([lines, times, samples]).toEqual([[], [], 0]);
});

describe("a line in windows", () => {
  const text = "one two three four.";

  test("has the same audio and the same word timestamps as a line without windows", async () => {
    const whole = await synthesize(text, new LetterModel(50));
    const windows = await synthesize(text, new LetterModel(50, 130), true);
    expect(windows.samples).toBe(whole.samples);
    expect(windows.pieces.flatMap((piece) => [...piece])).toEqual(
      whole.pieces.flatMap((piece) => [...piece]),
    );
    expect(windows.times).toEqual(whole.times);
  });

  test("is synthesized as a whole if its audio is stretched afterwards, because no piece is sent earlier", async () => {
    const requested: (boolean | undefined)[] = [];
    const voice = { kind: "neural", speaker: 0 } as const;
    const tokens: Token[] = [{ text: "one", before: "", after: "", stretch: 1, sounds: ["one"] }];
    const sink = { audio: () => true, times: () => true, isStopped: () => false };
    const speak = withinSpeedRange(
      ({ inWindows }, speech) => {
        requested.push(inWindows);
        speech.audio(new Int16Array(100), 1000);
      },
      { least: 0.5, most: 2 },
    );
    for (const stretch of [2, 3]) await speak({ voice, tokens, stretch, inWindows: true }, sink);
    expect(requested).toEqual([true, false]);
  });

  test("is sent in pieces until the last word begins", async () => {
    const { pieces } = await synthesize(text, new LetterModel(50, 600), true);
    expect(pieces.map(({ length }) => length)).toEqual([600, 600, 200, 440]);
  });

  test("is sent at once if it has one word", async () => {
    const { pieces, times } = await synthesize("three.", new LetterModel(50, 130), true);
    expect(pieces).toHaveLength(1);
    expect(times.map(({ token }) => token)).toEqual([0]);
  });

  test("is only the first line of an utterance", async () => {
    const { pieces } = await synthesize("one, two.", new LetterModel(5, 130), true);
    const whole = await synthesize("one, two.", new LetterModel(5));
    expect(pieces.reduce((sum, { length }) => sum + length, 0)).toBe(whole.samples);
  });

  test("ends after an abort", async () => {
    const options = { inWindows: true, piecesUntilStop: 2 };
    const { pieces } = await synthesizeUntil(text, new LetterModel(50, 300), options);
    expect(pieces).toHaveLength(2);
  });
});
