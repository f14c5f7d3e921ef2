import { describe, expect, test } from "vitest";
import type { Token, TokenTimestamp } from "../../../server/contract/speech.ts";
import {
  exactBorders,
  Line,
  melodyMarks,
  type NeuralModel,
  neuralSpeedRange,
  type SpelledLine,
} from "../../../server/engine/neural/neural-model.ts";
import { neuralSynthesizer } from "../../../server/engine/neural/synthesize.ts";

const samplesOfId = 100;

/**
 * An engine that takes a tenth of a second for each letter. It knows lowercase letters, spaces and
 * punctuation marks.
 */
class LetterModel implements NeuralModel {
  readonly rate = 1000;
  readonly reach = neuralSpeedRange;
  readonly borders = exactBorders;
  readonly maxSymbols: number;
  /** The lines that were requested. */
  readonly lines: string[] = [];

  constructor(maxSymbols: number) {
    this.maxSymbols = maxSymbols;
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
}

async function say(text: string, model: LetterModel) {
  const tokens = text.split(" ").map((written): Token => {
    const [, word = "", after = ""] = /^(.*?)([.,!?]*)$/.exec(written) ?? [];
    return { text: word, before: "", after, stretch: 1, sounds: [...word] };
  });
  const times: TokenTimestamp[] = [];
  let samples = 0;
  const sink = {
    audio: (piece: Int16Array) => {
      samples += piece.length;
      return true;
    },
    times: (told: readonly TokenTimestamp[]) => {
      times.push(...told);
      return true;
    },
  };
  const voice = { kind: "neural", speaker: 0 } as const;
  await neuralSynthesizer(model)({ voice, tokens, stretch: 1 }, sink);
  return { lines: model.lines, times, samples };
}

describe("a text that is too long for the model", () => {
  test("is split where its last phrase ends", async () => {
    const { lines, times } = await say("one, two three, four five six.", new LetterModel(22));
    expect(lines).toEqual(["one, two three,", "four five six."]);
    expect(times.map(({ token }) => token)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("is split between two words where no phrase ends", async () => {
    const { lines } = await say("aaaa bbbb cccc dddd", new LetterModel(9));
    expect(lines).toEqual(["aaaa bbbb", "cccc dddd"]);
  });

  test("is split inside a word that is longer than the model accepts, without loss", async () => {
    const { lines, times } = await say("abcdefghijklmnop.", new LetterModel(6));
    expect(lines.join("")).toBe("abcdefghijklmnop.");
    expect(new Set(times.map(({ token }) => token))).toEqual(new Set([0]));
  });

  test("has a pause if it was split at the end of a phrase, which its times include", async () => {
    const split = await say("one, two.", new LetterModel(5));
    expect(split.lines).toEqual(["one,", "two."]);
    const [first, second] = split.times;
    expect((second?.start ?? 0) - (first?.end ?? 0)).toBeGreaterThan(0.13);
    expect(split.times.at(-1)?.end).toBeLessThanOrEqual(split.samples / 1000);
  });
});

test("a word without a sound that the model knows is omitted, and the model is not called for it", async () => {
  const { lines, times, samples } = await say("ЖЖ", new LetterModel(50));
  expect([lines, times, samples]).toEqual([[], [], 0]);
});
