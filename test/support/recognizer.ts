import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pythonWith } from "./python.ts";

const run = promisify(execFile);
const packages = ["pocketsphinx==5.1.1", "jiwer==4.0.0"];
const program = fileURLToPath(new URL("recognize.py", import.meta.url));
const recognizeLimitMs = 300_000;

export interface Spoken {
  /** Path of a WAV file: mono, 16 bits, 16000 Hz. */
  readonly wav: string;
  readonly sentence: string;
}

export interface Recognized {
  /** Wrong words per word said, over all sentences: 0 is perfect, above 1 is possible. */
  readonly wordErrorRate: number;
  readonly heard: readonly string[];
}

/** What a speech recognizer (English) hears in these files, against what they should say. */
export async function recognize(spoken: readonly Spoken[]): Promise<Recognized> {
  const python = await pythonWith(packages);
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-recognize-"));
  try {
    const list = join(folder, "sentences.tsv");
    await writeFile(list, spoken.map(({ wav, sentence }) => `${wav}\t${sentence}\n`).join(""));
    const { stdout } = await run(python, [program, list], { timeout: recognizeLimitMs });
    return JSON.parse(stdout) as Recognized;
  } finally {
    await rm(folder, { recursive: true });
  }
}
