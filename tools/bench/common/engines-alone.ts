import { availableParallelism } from "node:os";
import { findVoice } from "../../../config/contract/voices.ts";
import type { Invocation, Utterance } from "../../../server/contract/speech.ts";
import { Engines } from "../../../server/engine/engines.ts";
import { speak } from "../../../server/model/speak.ts";
import { prepareSpeech } from "../../../server/model/synthesis.ts";
import { warmUpEngines } from "../../../server/model/warm-up.ts";
import { planSpeech } from "../../../server/text/planning/plan.ts";

/**
 * The engine processes of a model tier without the server, to measure their speed without HTTP, wire format
 * and encoders.
 */
export interface EnginesAlone {
  /**
   * Returns the milliseconds until the engine's first audio of a text, for the phrase that the server
   * synthesizes first.
   */
  firstChunkMs(text: string): Promise<number>;
  /** Returns the seconds of audio per second, including pauses, with this number of concurrent streams. */
  throughput(texts: readonly string[], streams: number, seconds: number): Promise<number>;
  close(): Promise<void>;
}

const voiceId = "alan";

/** Starts as many engine processes as a model tier on this machine has. */
export async function openEnginesAlone(): Promise<EnginesAlone> {
  const quiet = { info: () => undefined, warn: () => undefined };
  const engines = await Engines.open({ processes: availableParallelism(), log: quiet });
  await warmUpEngines(engines, new AbortController().signal);
  return {
    firstChunkMs: (text) => firstChunkMs(engines, text),
    throughput: (texts, streams, seconds) => throughput(engines, texts, streams, seconds),
    close: () => engines.close(),
  };
}

function voice() {
  const found = findVoice(voiceId);
  if (!found) throw new Error(`the catalogue has no voice ${voiceId}`);
  return found;
}

function firstUtterance(text: string): Utterance {
  const plan = planSpeech(text, {
    language: "eng",
    normalize: true,
    pauses: false,
    phonemes: false,
    inlineStretch: [],
    quickStart: false,
  });
  for (const segment of plan) {
    if (segment.kind === "phrase") {
      return { voice: voice().engine, tokens: segment.tokens, stretch: 1 };
    }
  }
  throw new Error("the text has no words to synthesize");
}

async function firstChunkMs(engines: Engines, text: string): Promise<number> {
  const utterance = firstUtterance(text);
  const { engine } = engines.speakerFor(voice(), "mist");
  const startedAt = performance.now();
  let first: number | undefined;
  for await (const { samples } of engine.speak(utterance, new AbortController().signal)) {
    if (samples.length > 0) first ??= performance.now() - startedAt;
  }
  if (first === undefined) throw new Error("the engine returned no audio");
  return first;
}

async function throughput(
  engines: Engines,
  texts: readonly string[],
  streams: number,
  seconds: number,
): Promise<number> {
  const over = AbortSignal.timeout(seconds * 1000);
  let next = 0;
  let audioSeconds = 0;
  const startedAt = performance.now();
  const stream = async () => {
    while (!over.aborted) {
      const speech = prepareSpeech(
        invocation(texts[next++ % texts.length] ?? ""),
        engines.speakerFor(voice(), "mist"),
      );
      for await (const { samples, rate } of speak(speech, over)) audioSeconds += samples.length / rate;
    }
  };
  await Promise.all(Array.from({ length: streams }, stream));
  return audioSeconds / ((performance.now() - startedAt) / 1000);
}

function invocation(text: string): Invocation {
  return {
    modelId: "mist",
    speaker: voiceId,
    lang: "eng",
    text,
    stretch: 1,
    noTextNormalization: false,
    pauseBetweenBrackets: false,
    phonemizeBetweenBrackets: false,
    inlineStretch: [],
    sampling: { repetitionPenalty: 1.5, temperature: 0.5, topP: 1, maxTokens: 1200 },
  };
}
