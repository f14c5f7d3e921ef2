import { setImmediate as letOthersRun } from "node:timers/promises";
import { type ModelId, models } from "../../config/contract/models.ts";
import { Failure, type FieldError } from "../contract/errors.ts";
import { type Frame, type Invocation, samplingDefaults } from "../contract/speech.ts";
import { readLexicon } from "../contract/text/lexicon.ts";
import { encodeFrame, encodeFrames, type WireFrame } from "../contract/wire.ts";
import type { VoiceEngine } from "../engine/engines.ts";
import { checkLongMarkup } from "../text/markup.ts";
import { planSpeech, type SpeechPlanOptions } from "../text/planning/plan.ts";
import type { OovCollector } from "./oov-collector.ts";
import { type SpeechJob, speak } from "./speak.ts";

/**
 * `max_tokens` limits the audio of a phrase also for engines without tokens: this number of tokens counts as
 * one second.
 */
const arcanaTokensPerSecond = 82;

/** Properties of a model, for every voice. */
interface ModelStyle {
  readonly quickStart: boolean;
  /** Duration relative to the voice's own. */
  readonly stretch: number;
}

/** mistv2 starts a long text sooner, and pronounces more carefully, which improves intelligibility. */
const manners: Readonly<Record<ModelId, ModelStyle>> = {
  mist: { quickStart: false, stretch: 1 },
  mistv2: { quickStart: true, stretch: 1.1 },
  arcana: { quickStart: false, stretch: 1 },
};

/**
 * Detects every invalid property of a request before the synthesis starts. The caller releases the speaker
 * after the synthesis, and this function if it throws.
 * @throws Failure `invalid_request` for markup, and for options that the engine does not have.
 */
export function prepareSpeech(invocation: Invocation, speaker: VoiceEngine): SpeechJob {
  try {
    return planJob(invocation, speaker);
  } catch (error) {
    speaker.release();
    throw error;
  }
}

function planJob(invocation: Invocation, speaker: VoiceEngine): SpeechJob {
  const { sampling } = invocation;
  const manner = manners[invocation.modelId];
  const isArcana = models[invocation.modelId].tier === "arcana";
  const { tokensPerSecond, phraseGrowth } = speaker.engine;
  const fields = unsupportedOptions(invocation, speaker);
  const [first] = fields;
  if (first) throw new Failure("invalid_request", `${first.pointer} ${first.detail}`, { fields });
  if (invocation.lexicon && speaker.voice.kind === "generated")
    throw new Failure("invalid_request", "This model reads text only, and accepts no pronunciations.");
  const segments = planSpeech(invocation.text, {
    ...textOptions(invocation),
    ...(phraseGrowth !== undefined && { growth: phraseGrowth }),
  });
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

/** Fields of the public request. */
const samplingFields = {
  repetitionPenalty: "repetition_penalty",
  temperature: "temperature",
  topP: "top_p",
} as const;

/**
 * Options of arcana that would have no effect: a mounted voice does not sample, so only the defaults are honest.
 * `max_tokens` has an effect with every engine.
 */
export function unsupportedOptions(
  { modelId, sampling }: Pick<Invocation, "modelId" | "sampling">,
  { engine, voice }: Pick<VoiceEngine, "engine" | "voice">,
): FieldError[] {
  if (models[modelId].tier !== "arcana" || voice.kind !== "neural") return [];
  const names = Object.keys(samplingFields) as (keyof typeof samplingFields)[];
  return names
    .filter((name) => sampling[name] !== samplingDefaults[name])
    .map((name) => ({
      pointer: `/${samplingFields[name]}`,
      detail: `has no effect here: ${engine.name} speaks this voice, and does not sample. Leave it out.`,
    }));
}

/**
 * The check that {@link prepareSpeech} leaves out: it reads the markup of a long text while other requests
 * run. @throws Failure `invalid_request`
 */
export function checkSpeech(invocation: Invocation): Promise<void> {
  return checkLongMarkup(invocation.text, textOptions(invocation), letOthersRun);
}

/** Settings of normalization. */
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

/** Additional content of the stream. */
export interface SpeechHooks {
  /** Updated during the stream. */
  readonly progress: Progress;
  /** Started after the first audio, so that it does not delay it. */
  readonly findWords?: () => OovCollector;
  /** Called when the engine has no more work for the stream. */
  readonly onSpoken?: () => void;
  readonly onFailure: (failure: Failure) => void;
}

/** Progress of a stream. */
export interface Progress {
  samples: number;
  /** Time spent on waiting for the stream's audio, without the time of a slow client. */
  workMs: number;
}

/**
 * Synthesizes until the first audio exists, and returns the whole stream of wire bytes, from the head to the
 * end or error. Undefined if the client disconnected.
 * @throws Failure if it fails before any audio; later failures become an error frame and are passed to
 * `onFailure`.
 */
export async function startSpeech(
  speech: SpeechJob,
  signal: AbortSignal,
  company: SpeechHooks,
): Promise<AsyncGenerator<Buffer, void, void> | undefined> {
  const frames = counted(speak(speech, signal), company);
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
  { progress, onSpoken }: Pick<SpeechHooks, "progress" | "onSpoken">,
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
    onSpoken?.();
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
    yield encodeFrames([head, ...early.flatMap(framesOf)]); // Sent in one write with the first audio.
    const found = findWords?.();
    for await (const frame of rest) {
      samples += frame.samples.length;
      yield encodeFrames(framesOf(frame));
      if (found) yield* found.take();
    }
    if (found) yield* found.last(signal);
    signal.throwIfAborted(); // An engine ends early after an abort, which is not the end of the speech.
    yield encodeFrame({ kind: "end", samples, workMs: Math.round(progress.workMs) });
  } catch (error) {
    if (error === signal.reason && !(error instanceof Failure)) return; // The client disconnected.
    const failure = asFailure(error);
    onFailure(failure);
    yield encodeFrame({ kind: "error", failure });
  } finally {
    await rest.return(); // Stops the engine, also if the client stopped reading.
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
  return new Failure("internal", "An unexpected error occurred in the model tier; its log has the details.", {
    cause: error,
  });
}
