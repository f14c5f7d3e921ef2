import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** Audio that FFmpeg decoded, as mono samples at its own sampling rate. */
export interface Heard {
  readonly samples: Int16Array;
  /** The sampling rate in Hz. */
  readonly rate: number;
  readonly codec: string;
}

/**
 * Decodes audio like a player, without padding and pre-skip. The function writes the bytes to a file, because
 * FFmpeg removes padding and pre-skip only from files.
 *
 * @param form flags that describe a format without a header, such as `["-f", "mulaw", "-ar", "8000"]`
 */
export async function decodeAudio(bytes: Uint8Array, form: readonly string[] = []): Promise<Heard> {
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-ffmpeg-"));
  try {
    const file = join(folder, "audio");
    await writeFile(file, bytes);
    // The Opus decoder of FFmpeg itself adds a delay of 12 ms at 8 kHz.
    const decoder = Buffer.from(bytes).includes("OpusHead") ? ["-c:a", "libopus"] : [];
    const { stdout, log } = await ffmpeg([
      ...decoder,
      ...form,
      "-i",
      file,
      "-f",
      "s16le",
      "-ac",
      "1",
      "pipe:1",
    ]);
    const [, codec = "", rate] = /Stream #0:0.*: Audio: (\w+).*?, (\d+) Hz/.exec(log) ?? [];
    if (!rate) throw new Error(`FFmpeg found no audio: ${log}`);
    return { samples: new Int16Array(new Uint8Array(stdout).buffer), rate: Number(rate), codec };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Resamples audio with FFmpeg. Both rates are in Hz. */
export async function resampleByFfmpeg(samples: Int16Array, from: number, to: number): Promise<Int16Array> {
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-ffmpeg-"));
  try {
    const file = join(folder, "audio");
    await writeFile(file, new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
    const input = ["-f", "s16le", "-ar", String(from), "-ac", "1", "-i", file];
    const filter = ["-af", "aresample=filter_size=128:phase_shift=10:cutoff=0.96", "-ar", String(to)];
    const { stdout } = await ffmpeg([...input, ...filter, "-f", "s16le", "pipe:1"]);
    return new Int16Array(new Uint8Array(stdout).buffer);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Runs FFmpeg, and returns its output and its log. Throws if FFmpeg reports an error. */
async function ffmpeg(parameters: readonly string[]): Promise<{ stdout: Buffer; log: string }> {
  const quiet = ["-hide_banner", "-nostdin", "-nostats", "-v", "level+info"];
  const { stdout, stderr } = await promisify(execFile)("ffmpeg", [...quiet, ...parameters], {
    encoding: "buffer",
    maxBuffer: 512 * 1024 * 1024,
  }).catch((cause: unknown) => {
    throw new Error("ffmpeg failed; if it is missing, run `make test-deps`", { cause });
  });
  const log = stderr.toString();
  if (/\[(error|fatal|panic)\]/.test(log)) throw new Error(`ffmpeg: ${log}`);
  return { stdout, log };
}

/**
 * Estimates the strongest frequency in Hz with a coarse scan and a fine scan. The first and the last fifth
 * are ignored, because codecs fade the audio there.
 */
export function toneOf({ samples, rate }: Pick<Heard, "samples" | "rate">): number {
  const middle = samples.subarray(Math.floor(samples.length * 0.2), Math.floor(samples.length * 0.8));
  let best = scan(middle, rate, { from: 50, to: Math.min(4000, rate / 2), step: 5 });
  best = scan(middle, rate, { from: best - 5, to: best + 5, step: 0.25 });
  return best;
}

function scan(samples: Int16Array, rate: number, range: { from: number; to: number; step: number }): number {
  let best = { frequency: 0, power: -1 };
  for (let frequency = range.from; frequency < range.to; frequency += range.step) {
    const power = powerAt(samples.subarray(0, Math.min(samples.length, rate)), frequency / rate);
    if (power > best.power) best = { frequency, power };
  }
  return best.frequency;
}

/** Computes the power of one frequency, in cycles per sample, with the Goertzel algorithm. */
function powerAt(samples: Int16Array, cycles: number): number {
  const coefficient = 2 * Math.cos(2 * Math.PI * cycles);
  let before = 0;
  let last = 0;
  for (const sample of samples) {
    const next = sample + coefficient * last - before;
    before = last;
    last = next;
  }
  return before * before + last * last - coefficient * before * last;
}

/**
 * Computes the signal-to-noise ratio of `heard` in decibels. The signal is `spoken` with the gain that fits
 * best.
 */
export function likenessDb(heard: Int16Array, spoken: Int16Array): number {
  let both = 0;
  let own = 0;
  for (let i = 0; i < spoken.length; i++) {
    both += (heard[i] ?? 0) * (spoken[i] as number);
    own += (spoken[i] as number) ** 2;
  }
  const gain = both / own;
  let noise = 0;
  for (let i = 0; i < spoken.length; i++) noise += ((heard[i] ?? 0) - gain * (spoken[i] as number)) ** 2;
  return 10 * Math.log10((gain * gain * own) / noise);
}

/** Builds a WAV file of mono 16-bit samples. */
export function wavFile(samples: Int16Array, rate: number): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples.byteLength, 40);
  return Buffer.concat([head, Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength)]);
}

/** Reads the format that `wavFile` and the server write: a header of 44 bytes, then mono 16-bit samples. */
export function readWav(file: Buffer): { samples: Int16Array; rate: number } {
  const samples = new Uint8Array(file.subarray(44));
  return { samples: new Int16Array(samples.buffer, 0, samples.length >> 1), rate: file.readUInt32LE(24) };
}
