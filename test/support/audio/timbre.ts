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
 * The typical variation of one speaker between texts: in semitones, as a share of the length of the vocal
 * tract, and in cepstral units.
 */
const variation = { semitones: 1, tract: 0.12, cepstrum: 3.5 };

/**
 * Computes the distance between two voices; see `distinct`. The length of the vocal tract is estimated from
 * all formants, because the detection sometimes misses a formant.
 */
export function distance(a: Timbre, b: Timbre): number {
  const semitones = 12 * Math.log2(a.pitchHz / b.pitchHz);
  const ratios = a.formantsHz.map((hertz, i) => Math.log(hertz / (b.formantsHz[i] ?? hertz)));
  const tract = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
  const cepstrum = Math.hypot(...a.cepstrum.map((value, i) => value - (b.cepstrum[i] ?? 0)));
  return Math.hypot(semitones / variation.semitones, tract / variation.tract, cepstrum / variation.cepstrum);
}

/**
 * Two recordings with a larger distance have different voices. With a smaller distance, the voice may be the
 * same.
 */
export const distinct = 1.25;
