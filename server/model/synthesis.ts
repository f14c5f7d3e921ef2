import { setImmediate as letOthersRun } from "node:timers/promises";
import { type ModelId, models } from "../../config/contract/models.ts";
import { Failure } from "../contract/errors.ts";
import type { Frame, Invocation } from "../contract/speech.ts";
import { encodeFrame, encodeFrames, type WireFrame } from "../contract/wire.ts";
import type { Engines, KnownVoice } from "../engine/engines.ts";
import { readLexicon } from "../text/lexicon.ts";
import { checkLongMarkup } from "../text/markup.ts";
import { planSpeech, type SpeechPlanOptions } from "../text/planning/plan.ts";
import type { OovCollector } from "./oov-collector.ts";
import { type SpeechJob, speak } from "./speak.ts";

/** `max_tokens` limits the audio of a phrase also where the engine writes no tokens: this many count as a second. */
const arcanaTokensPerSecond = 82;

/** How a model speaks, whatever the voice. */
interface ModelStyle {
  readonly quickStart: boolean;
  /** Length against the voice's own. */
  readonly stretch: number;
}

/** mistv2 begins a long text sooner, and pronounces with more care, by which it is understood better. */
const manners: Readonly<Record<ModelId, ModelStyle>> = {
  mist: { quickStart: false, stretch: 1 },
  mistv2: { quickStart: true, stretch: 1.1 },
  arcana: { quickStart: false, stretch: 1 },
};

/**
 * Everything about a request that can be wrong is found here, before anything is spoken.
 * The speaker is to be released when the speech is over.
 * @throws Failure `invalid_request` for markup, `model_unreachable` when the voice's engine is not installed.
 */
export function prepareSpeech(invocation: Invocation, voice: KnownVoice, engines: Engines): SpeechJob {
  const { sampling } = invocation;
  const manner = manners[invocation.modelId];
  const isArcana = models[invocation.modelId].tier === "arcana";
  const segments = planSpeech(invocation.text, textOptions(invocation));
  const speaker = engines.speakerFor(voice);
  const { tokensPerSecond } = speaker.engine;
  return {
    speaker,
    segments,
    stretch: invocation.stretch * manner.stretch,
    maxPhraseSeconds: isArcana
      ? sampling.maxTokens / (tokensPerSecond ?? arcanaTokensPerSecond)
      : Number.POSITIVE_INFINITY,
    ...(tokensPerSecond && { sampling }),
  };
}

/** What {@link prepareSpeech} does not find by itself: a long text's markup is looked through while others run. @throws Failure `invalid_request` */
export function checkSpeech(invocation: Invocation): Promise<void> {
  return checkLongMarkup(invocation.text, textOptions(invocation), letOthersRun);
}

/** How the text is read. */
export function textOptions(invocation: Invocation): SpeechPlanOptions {
  return {
    language: invocation.lang,
    normalize: !invocation.noTextNormalization,
    pauses: invocation.pauseBetweenBrackets,
    phonemes: invocation.phonemizeBetweenBrackets,
    inlineStretch: invocation.inlineStretch,
    quickStart: manners[invocation.modelId].quickStart,
    ...(invocation.lexicon && { lexicon: readLexicon(invocation.lexicon) }),
  };
}

/** What goes beside the speech. */
export interface SpeechHooks {
  /** Kept up to date. */
  readonly progress: Progress;
  /** Begun once the first audio is there, so that it takes nothing from it. */
  readonly findWords?: () => OovCollector;
  readonly onFailure: (failure: Failure) => void;
}

/** How far a stream has come. */
export interface Progress {
  samples: number;
  /** Spent on waiting for the stream's audio; the time of a listener who is slow to take it is not in it. */
  workMs: number;
}

/**
 * Speaks until the first audio is there, and gives back the whole stream of wire bytes, from the head to the end or
 * error; undefined when the caller is gone.
 * @throws Failure when it fails before any audio; later failures become an error frame and go to `onFailure`.
 */
export async function startSpeech(
  speech: SpeechJob,
  signal: AbortSignal,
  company: SpeechHooks,
): Promise<AsyncGenerator<Buffer, void, void> | undefined> {
  const frames = counted(speak(speech, signal), company.progress);
  const early: Frame[] = [];
  for (let next = await frames.next(); !next.done; next = await frames.next()) {
    early.push(next.value);
    if (next.value.samples.length > 0) break;
  }
  if (signal.reason instanceof Failure) throw signal.reason;
  return signal.aborted ? undefined : encodeSpeech(speech, early, frames, signal, company);
}

async function* counted(
  frames: AsyncGenerator<Frame, void, void>,
  progress: Progress,
): AsyncGenerator<Frame, void, void> {
  try {
    while (true) {
      const startedAt = performance.now();
      const { value, done } = await frames.next();
      progress.workMs += performance.now() - startedAt;
      if (done) return;
      progress.samples += value.samples.length;
      yield value;
    }
  } finally {
    await frames.return();
  }
}

async function* encodeSpeech(
  { speaker: { engine } }: SpeechJob,
  early: readonly Frame[],
  rest: AsyncGenerator<Frame, void, void>,
  signal: AbortSignal,
  { findWords, onFailure, progress }: SpeechHooks,
): AsyncGenerator<Buffer, void, void> {
  let samples = 0;
  try {
    const head: WireFrame = { kind: "head", rate: engine.rate, engine: engine.name };
    for (const frame of early) samples += frame.samples.length;
    yield encodeFrames([head, ...early.flatMap(framesOf)]); // in one write with the first audio
    const found = findWords?.();
    for await (const frame of rest) {
      samples += frame.samples.length;
      yield encodeFrames(framesOf(frame));
      if (found) yield* found.take();
    }
    if (found) yield* found.last(signal);
    signal.throwIfAborted(); // an engine ends early on an abort: that is no end of the speech
    yield encodeFrame({ kind: "end", samples, workMs: Math.round(progress.workMs) });
  } catch (error) {
    if (error === signal.reason && !(error instanceof Failure)) return; // the caller is gone
    const failure = asFailure(error);
    onFailure(failure);
    yield encodeFrame({ kind: "error", failure });
  } finally {
    await rest.return(); // also when nobody read on: the engine stops
  }
}

function framesOf({ samples, words }: Frame): WireFrame[] {
  const frames: WireFrame[] = [];
  if (words.length > 0) frames.push({ kind: "words", words });
  if (samples.length > 0) frames.push({ kind: "audio", samples });
  return frames;
}

export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure("internal", "Something went wrong in the model tier; its log tells more.", {
    cause: error,
  });
}
