import type { EngineVoice } from "../../config/contract/voices.ts";
import { Failure } from "../contract/errors.ts";
import type { Engines } from "../engine/engines.ts";
import type { Engine } from "../engine/runtime/engine.ts";

const awb = { kind: "flite", voice: "awb", pitch: 1, formants: 1, stretch: 1 } as const;
const voicesByEngine: Readonly<Record<string, readonly EngineVoice[]>> = {
  flite: [awb, { ...awb, voice: "slt" }],
  espeak: [{ kind: "espeak", voice: "en-us", pitch: 50, stretch: 1 }],
  "arcana-mini": [awb],
};

/**
 * Synthesizes a phrase with every process of every engine, because the first phrase of a process takes
 * several times as long as later phrases.
 * @throws Failure if an engine returns no audio.
 */
export async function warmUpEngines(engines: Engines, signal: AbortSignal): Promise<void> {
  for (const engine of engines.speaking()) {
    for (const voice of voicesByEngine[engine.name] ?? []) {
      await Promise.all(Array.from({ length: engine.capacity }, () => speakOnce(engine, voice, signal)));
    }
  }
}

async function speakOnce(engine: Engine, voice: EngineVoice, signal: AbortSignal): Promise<void> {
  const token = { text: "ready", before: "", after: ".", stretch: 1 };
  let samples = 0;
  for await (const frame of engine.speak({ voice, tokens: [token], stretch: 1 }, signal)) {
    samples += frame.samples.length;
  }
  if (samples === 0 && !signal.aborted) {
    throw new Failure(
      "model_failed",
      `The engine ${engine.name} returned no audio during the warm-up. Check the log of the model tier.`,
    );
  }
}
