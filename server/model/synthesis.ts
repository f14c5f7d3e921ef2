import { setImmediate as letOthersRun } from "node:timers/promises";
import { type ModelId, models } from "../../config/contract/models.ts";
import { Failure, type FieldError } from "../contract/errors.ts";
import { type Frame, type Invocation, type Sampling, samplingDefaults } from "../contract/speech.ts";
import { readLexicon } from "../contract/text/lexicon.ts";
import { encodeFrame, encodeFrames, type WireFrame } from "../contract/wire.ts";
import type { VoiceEngine } from "../engine/engines.ts";
import { checkLongMarkup } from "../text/markup.ts";
import { planSpeech, type SpeechPlanOptions } from "../text/planning/plan.ts";
import type { OovCollector } from "./oov-collector.ts";
import { type SpeechJob, speak } from "./speak.ts";

/**
 * The number of tokens that count as one second of audio. With this number, `max_tokens` also limits engines
 * without tokens.
 */
const arcanaTokensPerSecond = 82;

/** The properties of a model, which apply to all its voices. */
interface ModelStyle {
  readonly quickStart: boolean;
  /** The length of the speech relative to the voice's normal length. */
  readonly stretch: number;
}

/**
 * The properties of each model. mistv2 starts a long text sooner, and speaks more slowly to be easier to
 * understand.
 */
const styles: Readonly<Record<ModelId, ModelStyle>> = {
  mist: { quickStart: false, stretch: 1 },
  mistv2: { quickStart: true, stretch: 1.1 },
  arcana: { quickStart: false, stretch: 1 },
};

/**
 * Plans the speech and detects every error of a request before the synthesis starts. The caller releases the
 * speaker after the synthesis. If this function throws, it has already released the speaker.
 * @throws Failure `invalid_request` for invalid markup, and for options that the engine does not support.
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
  const sampling = samplingFor(invocation, speaker);
  const style = styles[invocation.modelId];
  const isArcana = models[invocation.modelId].tier === "arcana";
  const { tokensPerSecond, phraseGrowth } = speaker.engine;
  const fields = unsupportedOptions(invocation, speaker);
  const [first] = fields;
  if (first) throw new Failure("invalid_request", `${first.pointer} ${first.detail}`, { fields });
  if (invocation.lexicon && speaker.voice.kind === "generated")
    throw new Failure(
      "invalid_request",
      "/lexicon is not supported: the generator of this voice reads text only. Remove the pronunciations.",
    );
  const segments = planSpeech(invocation.text, {
    ...textOptions(invocation),
    ...(phraseGrowth !== undefined && { growth: phraseGrowth }),
  });
  return {
    speaker,
    segments,
    stretch: invocation.stretch * style.stretch,
    maxPhraseSeconds: isArcana
      ? sampling.maxTokens / (tokensPerSecond ?? arcanaTokensPerSecond)
      : Number.POSITIVE_INFINITY,
    ...(tokensPerSecond && { sampling }),
  };
}

/**
 * Returns the sampling of a request. The model's own defaults apply to the options that the request does not
 * set.
 */
function samplingFor({ sampling, unsetSampling = [] }: Invocation, { engine }: VoiceEngine): Sampling {
  const { samplingDefaults: own = sampling } = engine;
  const unset = unsetSampling.map((name) => [name, own[name]] as const);
  return { ...sampling, ...Object.fromEntries(unset) };
}

/** The names of the sampling options in the public request. */
const samplingFields = {
  repetitionPenalty: "repetition_penalty",
  temperature: "temperature",
  topP: "top_p",
} as const;

/**
 * Returns the options of arcana that would have no effect. A mounted voice does not sample, so a request may
 * only set the defaults. `max_tokens` has an effect with every engine.
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
      detail: `has no effect: the engine ${engine.name} of this voice does not sample. Remove the field.`,
    }));
}

/**
 * Checks the markup of a long text while other requests run. {@link prepareSpeech} does not include this
 * check.
 * @throws Failure `invalid_request`
 */
export function checkSpeech(invocation: Invocation): Promise<void> {
  return checkLongMarkup(invocation.text, textOptions(invocation), letOthersRun);
}

/** Returns the options of the speech plan. */
export function textOptions(invocation: Invocation): SpeechPlanOptions {
  return {
    language: invocation.lang,
    normalize: !invocation.noTextNormalization,
    pauses: invocation.pauseBetweenBrackets,
    phonemes: invocation.phonemizeBetweenBrackets,
    inlineStretch: invocation.inlineStretch,
    quickStart: styles[invocation.modelId].quickStart,
    ...(invocation.lexicon && { lexicon: readLexicon(invocation.lexicon) }),
  };
}

/** The callbacks of a stream. */
export interface SpeechHooks {
  /** The progress, which is updated during the stream. */
  readonly progress: Progress;
  /**
   * Starts the search for out-of-vocabulary words. The stream calls this function after the first audio,
   * because an earlier search would delay the first audio.
   */
  readonly findWords?: () => OovCollector;
  /** Called when the engine has no more work for the stream. */
  readonly onSpoken?: () => void;
  readonly onFailure: (failure: Failure) => void;
}

/** The progress of a stream. */
export interface Progress {
  samples: number;
  /** The time for which the tier waited for the stream's audio. Waiting for a slow client does not count. */
  workMs: number;
}

/**
 * Synthesizes until the first audio exists. Returns the bytes of the whole stream, from the head to the end
 * or the error. Returns undefined if the client disconnected.
 * @throws Failure if the synthesis fails before any audio. A later failure becomes an error frame, and is
 * reported to `onFailure`.
 */
export async function startSpeech(
  speech: SpeechJob,
  signal: AbortSignal,
  hooks: SpeechHooks,
): Promise<AsyncGenerator<Buffer, void, void> | undefined> {
  const frames = countProgress(speak(speech, signal), hooks);
  const early: Frame[] = [];
  for (let next = await frames.next(); !next.done; next = await frames.next()) {
    early.push(next.value);
    if (next.value.samples.length > 0) break;
  }
  if (signal.reason instanceof Failure) throw signal.reason;
  return signal.aborted ? undefined : encodeWireFrames(speech, early, frames, signal, hooks);
}

async function* countProgress(
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

async function* encodeWireFrames(
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
    // The head and the first audio are sent in one write.
    yield encodeFrames([head, ...early.flatMap(framesOf)]);
    const found = findWords?.();
    for await (const frame of rest) {
      samples += frame.samples.length;
      yield encodeFrames(framesOf(frame));
      if (found) yield* found.take();
    }
    if (found) yield* found.last(signal);
    // An engine that ends early after an abort has not synthesized all of the speech.
    signal.throwIfAborted();
    yield encodeFrame({ kind: "end", samples, workMs: Math.round(progress.workMs) });
  } catch (error) {
    if (error === signal.reason && !(error instanceof Failure)) return; // The client has disconnected.
    const failure = asFailure(error);
    onFailure(failure);
    yield encodeFrame({ kind: "error", failure });
  } finally {
    await rest.return(); // The call stops the engine if the client stopped reading.
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
  return new Failure(
    "internal",
    "An unexpected error occurred in the model tier. The log of the model tier has the details.",
    {
      cause: error,
    },
  );
}
