import { Failure } from "../../contract/errors.ts";
import type { Token } from "../../contract/speech.ts";
import type { Reader } from "./engine.ts";
import { VoiceProblem } from "./manifest.ts";
import type { PlacedReading } from "./package.ts";

const anyWord: Token = { text: "a", before: "", after: "", stretch: 1 };

/**
 * Reads a word with each eSpeak NG voice of a package. Without this check, every request for a voice that
 * eSpeak NG does not have would fail.
 * @throws VoiceProblem that names the field.
 */
export async function checkReadings(
  readings: readonly PlacedReading[],
  reader: Reader | undefined,
  source: { readonly file: string },
  signal: AbortSignal,
): Promise<void> {
  const checked = new Set<string>();
  for (const reading of readings) {
    if (reading.kind !== "espeak" || checked.has(reading.voice)) continue;
    if (!reader) {
      throw new VoiceProblem(
        source,
        "needs eSpeak NG; install it: npm install @echogarden/espeak-ng-emscripten",
      );
    }
    checked.add(reading.voice);
    const voice = { kind: "espeak", voice: reading.voice, pitch: 50, stretch: 1 } as const;
    try {
      await reader.read({ voice, tokens: [anyWord], stretch: 1 }, signal);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new VoiceProblem(reading.place, `${problemWith(reading.voice)}: ${reasonOf(error)}`, {
        cause: error,
      });
    }
  }
}

function problemWith(voice: string): string {
  return `is ${voice}, and eSpeak NG cannot read text with this voice (British English is en, American English is en-us)`;
}

function reasonOf({ cause, message }: Failure): string {
  return cause instanceof Error ? cause.message : message;
}
