import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createRateConverter } from "../../../server/audio/resample.ts";
import type { WordTimestamp } from "../../../server/contract/speech.ts";
import { pythonWith } from "../python.ts";
import { wavFile } from "./audio.ts";

const run = promisify(execFile);
const packages = ["pocketsphinx==5.1.1", "jiwer==4.0.0"];
const program = fileURLToPath(new URL("recognize.py", import.meta.url));
const recognizeLimitMs = 600_000;
/** Sampling rate in Hz of the recognizer's model. */
const modelRate = 16_000;
/** Silence around the speech, which the recognizer needs, as in a recording by a microphone. */
const roomSeconds = 0.25;

/** A recording with the English text that it should contain. */
export interface Spoken {
  readonly samples: Int16Array;
  /** The sampling rate in Hz. */
  readonly rate: number;
  readonly sentence: string;
}

export interface Recognized {
  /** The word error rate over all sentences: 0 is perfect, and values above 1 are possible. */
  readonly wordErrorRate: number;
  readonly heard: readonly string[];
}

/** Compares the words that a speech recognizer finds with the expected words. */
export async function recognize(spoken: readonly Spoken[]): Promise<Recognized> {
  const [recognized] = await recognizeEach([spoken]);
  if (!recognized) throw new Error("the recognizer answered nothing");
  return recognized;
}

/** Compares several groups of recordings with one start of the recognizer, because a start takes seconds. */
export async function recognizeEach(groups: readonly (readonly Spoken[])[]): Promise<Recognized[]> {
  const answers = await ask<{ heard: string; wrong: number; words: number }[]>("words", groups.flat());
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  let from = 0;
  return groups.map(({ length }) => {
    const own = answers.slice(from, from + length);
    from += length;
    return {
      wordErrorRate: sum(own.map(({ wrong }) => wrong)) / sum(own.map(({ words }) => words)),
      heard: own.map(({ heard }) => heard),
    };
  });
}

/** Finds the start and end of each word in each recording by forced alignment, to a hundredth of a second. */
export async function align(spoken: readonly Spoken[]): Promise<WordTimestamp[][]> {
  const sentences = await ask<[string, number, number][][]>("align", spoken);
  return sentences.map((words) =>
    words.map(([word, start, end]) => ({ word, start: start - roomSeconds, end: end - roomSeconds })),
  );
}

/** Reports for each recording whether the recognizer selects its own sentence out of all sentences. */
export function choose(spoken: readonly Spoken[]): Promise<boolean[]> {
  return ask("choose", spoken);
}

async function ask<Answer>(mode: string, spoken: readonly Spoken[]): Promise<Answer> {
  const python = await pythonWith(packages);
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-recognize-"));
  try {
    const lines: string[] = [];
    for (const [i, { sentence, ...recording }] of spoken.entries()) {
      const path = join(folder, `${i}.wav`);
      await writeFile(path, wavFile(withRoom(recording), modelRate));
      lines.push(`${path}\t${sentence}\n`);
    }
    const list = join(folder, "sentences.tsv");
    await writeFile(list, lines.join(""));
    const { stdout } = await run(python, [program, mode, list], {
      timeout: recognizeLimitMs,
      maxBuffer: 2 ** 26,
    });
    return JSON.parse(stdout) as Answer;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function withRoom({ samples, rate }: Omit<Spoken, "sentence">): Int16Array {
  const converter = createRateConverter(rate, modelRate);
  const converted = [...converter.push(samples), ...converter.finish()];
  const room = new Array<number>(modelRate * roomSeconds).fill(0);
  return Int16Array.from([...room, ...converted, ...room]);
}
