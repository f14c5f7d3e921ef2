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
/** The sampling rate of the recognizer's model in Hz. */
export const modelRate = 16_000;
/** The recognizer needs this much silence before and after the speech. */
const silenceSeconds = 0.25;

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
  if (!recognized) throw new Error("the recognizer returned no result");
  return recognized;
}

/**
 * Like `recognize`, for several groups of recordings. It starts the recognizer once, because a start takes
 * seconds.
 */
export async function recognizeEach(groups: readonly (readonly Spoken[])[]): Promise<Recognized[]> {
  const results = await runRecognizer<{ heard: string; wrong: number; words: number }[]>(
    "words",
    groups.flat(),
  );
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  let from = 0;
  return groups.map(({ length }) => {
    const own = results.slice(from, from + length);
    from += length;
    return {
      wordErrorRate: sum(own.map(({ wrong }) => wrong)) / sum(own.map(({ words }) => words)),
      heard: own.map(({ heard }) => heard),
    };
  });
}

/** Finds the start and end of each word in each recording by forced alignment, with a precision of 10 ms. */
export async function align(spoken: readonly Spoken[]): Promise<WordTimestamp[][]> {
  const sentences = await runRecognizer<[string, number, number][][]>("align", spoken);
  return sentences.map((words) =>
    words.map(([word, start, end]) => ({ word, start: start - silenceSeconds, end: end - silenceSeconds })),
  );
}

/** Returns for each recording whether the recognizer selects the right sentence from all sentences. */
export function choose(spoken: readonly Spoken[]): Promise<boolean[]> {
  return runRecognizer("choose", spoken);
}

async function runRecognizer<Answer>(mode: string, spoken: readonly Spoken[]): Promise<Answer> {
  const python = await pythonWith(packages);
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-recognize-"));
  try {
    const lines: string[] = [];
    for (const [i, { sentence, ...recording }] of spoken.entries()) {
      const path = join(folder, `${i}.wav`);
      await writeFile(path, wavFile(withSilence(recording), modelRate));
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

export function withSilence({ samples, rate }: Omit<Spoken, "sentence">): Int16Array {
  const converter = createRateConverter(rate, modelRate);
  const converted = [...converter.push(samples), ...converter.finish()];
  const silence = new Array<number>(modelRate * silenceSeconds).fill(0);
  return Int16Array.from([...silence, ...converted, ...silence]);
}
