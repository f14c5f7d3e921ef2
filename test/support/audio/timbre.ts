import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createRateConverter } from "../../../server/audio/resample.ts";
import { pythonWith } from "../python.ts";
import { wavFile } from "./audio.ts";

const run = promisify(execFile);
const packages = ["numpy==2.3.5"];
const program = fileURLToPath(new URL("timbre.py", import.meta.url));
const measuredRate = 16_000;
const measureLimitMs = 120_000;

/** Acoustic properties of a voice. */
export interface Timbre {
  /** The median pitch. */
  readonly pitchHz: number;
  /** The medians of the lowest four formants. */
  readonly formantsHz: readonly number[];
  /** The means of the mel-frequency cepstral coefficients 1 to 12. */
  readonly cepstrum: readonly number[];
}

export interface Recording {
  readonly samples: Int16Array;
  /** The sampling rate in Hz. */
  readonly rate: number;
}

export async function timbresOf(recordings: readonly Recording[]): Promise<Timbre[]> {
  const python = await pythonWith(packages);
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-timbre-"));
  try {
    const paths = recordings.map((_, i) => join(folder, `${i}.wav`));
    for (const [i, { samples, rate }] of recordings.entries()) {
      await writeFile(paths[i] ?? "", wavFile(atRate(samples, rate), measuredRate));
    }
    const list = join(folder, "files");
    await writeFile(list, paths.join("\n"));
    const { stdout } = await run(python, [program, list], { timeout: measureLimitMs });
    return JSON.parse(stdout) as Timbre[];
  } finally {
    await rm(folder, { recursive: true });
  }
}

function atRate(samples: Int16Array, rate: number): Int16Array {
  const converter = createRateConverter(rate, measuredRate);
  return Int16Array.from([...converter.push(samples), ...converter.finish()]);
}

/**
 * The approximate variation of one speaker from text to text: semitones, a share of the tract's length,
 * cepstral units.
 */
const usual = { semitones: 1, tract: 0.12, cepstrum: 3.5 };

/**
 * Computes the distance between two voices; see `distinct`. The tract is the mean of all formants, because
 * the detection sometimes misses one.
 */
export function distance(a: Timbre, b: Timbre): number {
  const semitones = 12 * Math.log2(a.pitchHz / b.pitchHz);
  const ratios = a.formantsHz.map((hertz, i) => Math.log(hertz / (b.formantsHz[i] ?? hertz)));
  const tract = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
  const cepstrum = Math.hypot(...a.cepstrum.map((value, i) => value - (b.cepstrum[i] ?? 0)));
  return Math.hypot(semitones / usual.semitones, tract / usual.tract, cepstrum / usual.cepstrum);
}

/** The threshold: a larger distance means two voices, and a smaller one means one voice with another text. */
export const distinct = 1.25;
