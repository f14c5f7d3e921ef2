import { models } from "../../config/contract/models.ts";
import type { Voice } from "../../config/contract/voices.ts";
import type { Engines } from "../engine/engines.ts";
import { Failure } from "../errors.ts";
import type { Frame, Invocation } from "../speech.ts";
import { planSpeech } from "../text/plan.ts";
import { encodeFrame } from "../wire.ts";
import { plainProsody, sampledProsody } from "./prosody.ts";
import { type Speech, speak } from "./speak.ts";

/** arcana's tokens for a second of audio: `max_tokens` bounds the audio of one phrase by it. */
const arcanaTokensPerSecond = 82;

/**
 * Everything about a request that can be wrong is found here, before anything is spoken.
 * @throws Failure `invalid_request` for markup, `model_unreachable` when the voice's engine is not installed.
 */
export function prepareSpeech(invocation: Invocation, voice: Voice, engines: Engines): Speech {
  const { sampling } = invocation;
  const samples = models[invocation.modelId].tier === "arcana";
  return {
    speaker: engines.speakerFor(voice.engine),
    segments: planSpeech(invocation.text, {
      language: invocation.lang,
      normalize: !invocation.noTextNormalization,
      pauses: invocation.pauseBetweenBrackets,
      phonemes: invocation.phonemizeBetweenBrackets,
      inlineStretch: invocation.inlineStretch,
    }),
    stretch: invocation.stretch,
    prosody: samples ? sampledProsody(sampling, Math.random) : plainProsody,
    maxPhraseSeconds: samples ? sampling.maxTokens / arcanaTokensPerSecond : Number.POSITIVE_INFINITY,
  };
}

/**
 * Speaks until the first audio is there, and gives back the whole stream of wire bytes, from the head to the end or
 * error; undefined when the caller is gone.
 * @throws Failure when it fails before any audio; later failures become an error frame and go to `onFailure`.
 */
export async function startSpeech(
  speech: Speech,
  signal: AbortSignal,
  onFailure: (failure: Failure) => void,
): Promise<AsyncGenerator<Buffer, void, void> | undefined> {
  const frames = speak(speech, signal);
  const early: Frame[] = [];
  for (let next = await frames.next(); !next.done; next = await frames.next()) {
    early.push(next.value);
    if (next.value.samples.length > 0) break;
  }
  if (signal.reason instanceof Failure) throw signal.reason;
  return signal.aborted ? undefined : encodeSpeech(speech, early, frames, signal, onFailure);
}

async function* encodeSpeech(
  { speaker: { engine } }: Speech,
  early: readonly Frame[],
  rest: AsyncGenerator<Frame, void, void>,
  signal: AbortSignal,
  onFailure: (failure: Failure) => void,
): AsyncGenerator<Buffer, void, void> {
  let samples = 0;
  try {
    const head = encodeFrame({ kind: "head", rate: engine.rate, engine: engine.name });
    for (const frame of early) samples += frame.samples.length;
    yield Buffer.concat([head, ...early.map(encodeSpoken)]); // in one write with the first audio
    for await (const frame of rest) {
      samples += frame.samples.length;
      yield encodeSpoken(frame);
    }
    signal.throwIfAborted(); // an engine ends early on an abort: that is no end of the speech
    yield encodeFrame({ kind: "end", samples });
  } catch (error) {
    if (error === signal.reason && !(error instanceof Failure)) return; // the caller is gone
    const failure = asFailure(error);
    onFailure(failure);
    yield encodeFrame({ kind: "error", failure });
  } finally {
    await rest.return(); // also when nobody read on: the engine stops
  }
}

function encodeSpoken({ samples, words }: Frame): Buffer {
  const parts: Buffer[] = [];
  if (words.length > 0) parts.push(encodeFrame({ kind: "words", words }));
  if (samples.length > 0) parts.push(encodeFrame({ kind: "audio", samples }));
  return Buffer.concat(parts);
}

export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure("internal", "Something went wrong in the model tier; its log tells more.", {
    cause: error,
  });
}
