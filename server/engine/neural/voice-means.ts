import type { SpelledLine } from "./neural-model.ts";

/**
 * The means over time of a voice's features, which windows use instead of the means of the line. The means of
 * a line depend mostly on its share of silence, so they are interpolated between a short and a long line.
 */
export interface VoiceMeans {
  /** A word with long silence around it. */
  readonly short: LineMeans;
  /** A sentence with short silence around it. */
  readonly long: LineMeans;
}

export interface LineMeans {
  readonly speechShare: number;
  readonly means: Float32Array;
}

/** The highest weight of the long line, for lines with less silence than that line. */
const mostWeight = 1.1;

/** Returns the share of a line's duration from the start of the first word to the end of the last word. */
export function speechShareOf({ tokens }: SpelledLine, durations: readonly number[]): number {
  const first = tokens.findIndex((token) => token >= 0);
  const last = tokens.findLastIndex((token) => token >= 0);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return first < 0 ? 0 : sum(durations.slice(first, last + 1)) / sum(durations);
}

/** Returns the means for a line with a given share of speech. */
export function interpolate({ short, long }: VoiceMeans, speechShare: number): Float32Array {
  const range = long.speechShare - short.speechShare;
  const position = range > 0 ? (speechShare - short.speechShare) / range : 1;
  const weight = Math.max(0, Math.min(mostWeight, position));
  return short.means.map((mean, i) => mean + weight * ((long.means[i] ?? 0) - mean));
}

/** Encodes the means of voices as one row for each voice. */
export function encodeMeans(voices: readonly VoiceMeans[]): Buffer {
  const rows = voices.flatMap(({ short, long }) => [
    Float32Array.of(short.speechShare, long.speechShare),
    short.means,
    long.means,
  ]);
  return Buffer.concat(rows.map((row) => Buffer.from(row.buffer, row.byteOffset, row.byteLength)));
}

/**
 * Decodes the row of one voice.
 * @throws Error if the row is missing or incomplete.
 */
export function decodeMeans(bytes: Buffer, row: number, channels: number): VoiceMeans {
  const size = 2 + 2 * channels;
  const own = bytes.subarray(row * size * 4, (row + 1) * size * 4);
  if (own.length !== size * 4) throw new Error(`the file of means has no row ${row}`);
  const values = new Float32Array(new Uint8Array(own).buffer);
  const [shortShare = 0, longShare = 0] = values;
  return {
    short: { speechShare: shortShare, means: values.slice(2, 2 + channels) },
    long: { speechShare: longShare, means: values.slice(2 + channels) },
  };
}
