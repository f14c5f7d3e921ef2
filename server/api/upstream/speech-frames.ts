import { Failure } from "../../contract/errors.ts";
import { decodeFrames, type WireFrame } from "../../contract/wire.ts";
import type { PoolStream } from "./pool-stream.ts";

/** The frames that this tier encodes for the client. */
export type SpeechFrame = Extract<WireFrame, { kind: "audio" | "words" }>;

type SpokenFrame = Exclude<WireFrame, { kind: "oovs" }>;

export interface StartedSpeech {
  /** The sampling rate in Hz of the engine's audio. */
  readonly rate: number;
  readonly engine: string;
  /**
   * The audio and the word timestamps in order. The first audio has already arrived. The iteration ends when
   * the speech is complete.
   * @throws Failure if the model fails or its stream is interrupted.
   */
  readonly frames: AsyncIterable<SpeechFrame>;
}

/**
 * Reads a model tier's stream up to its first audio.
 * @param stream records the end of the stream.
 * @param onOovs receives the out-of-vocabulary words of the text.
 * @throws Failure if the model fails before the first audio.
 */
export async function awaitFirstAudio(
  body: AsyncIterable<Uint8Array>,
  onOovs: OnOovs | undefined,
  stream: PoolStream,
): Promise<StartedSpeech> {
  const wire = withoutOovs(decodeFrames(body), onOovs);
  const before: SpeechFrame[] = [];
  let head: Extract<SpokenFrame, { kind: "head" }> | undefined;
  let end: Extract<SpokenFrame, { kind: "end" }> | undefined;
  while (!end && !before.some((frame) => frame.kind === "audio")) {
    const { value, done } = await wire.next();
    if (done) break;
    if (value.kind === "error") throw value.failure;
    if (value.kind === "head") head = value;
    else if (value.kind === "end") end = value;
    else before.push(value);
  }
  if (!head)
    throw new Failure(
      "model_failed",
      "The model tier sent no head frame; its version may be incompatible with this API tier.",
    );
  const { rate, engine } = head;
  return { rate, engine, frames: end ? endedEarly(before, stream) : frames(before, wire, { stream, rate }) };
}

type OnOovs = (words: readonly string[]) => void;

/** Yields all frames except frames with out-of-vocabulary words, which the callback receives. */
async function* withoutOovs(
  wire: AsyncIterable<WireFrame>,
  onOovs: OnOovs | undefined,
): AsyncGenerator<SpokenFrame, void, void> {
  for await (const frame of wire) {
    if (frame.kind === "oovs") onOovs?.(frame.words);
    else yield frame;
  }
}

/** Yields the frames of a stream that ended before any audio, because the text has no words. */
async function* endedEarly(
  before: readonly SpeechFrame[],
  stream: PoolStream,
): AsyncGenerator<SpeechFrame, void, void> {
  stream.ended(0, undefined);
  yield* before;
}

interface StreamSource {
  readonly stream: PoolStream;
  /** The sampling rate in Hz. */
  readonly rate: number;
}

async function* frames(
  before: readonly SpeechFrame[],
  wire: AsyncGenerator<SpokenFrame, void, void>,
  source: StreamSource,
): AsyncGenerator<SpeechFrame, void, void> {
  try {
    yield* whole(before, wire, source);
  } catch (error) {
    source.stream.failed(error);
    throw error;
  }
}

async function* whole(
  before: readonly SpeechFrame[],
  wire: AsyncGenerator<SpokenFrame, void, void>,
  { stream, rate }: StreamSource,
): AsyncGenerator<SpeechFrame, void, void> {
  let received = 0;
  const counted = (frame: SpeechFrame) => {
    if (frame.kind === "audio") received += frame.samples.length;
    return frame;
  };
  for (const frame of before) yield counted(frame);
  for await (const frame of mapSocketErrors(wire)) {
    if (frame.kind === "error") throw frame.failure;
    if (frame.kind === "end" && frame.samples !== received) throw incomplete(frame.samples, received);
    if (frame.kind === "end") stream.ended((1000 * received) / rate, frame.workMs);
    if (frame.kind === "audio" || frame.kind === "words") yield counted(frame);
  }
}

/** Yields the same frames. An error of the connection becomes a failure for the client. */
async function* mapSocketErrors(wire: AsyncIterable<SpokenFrame>): AsyncGenerator<SpokenFrame, void, void> {
  try {
    yield* wire;
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("model_failed", "The model's stream was interrupted; send the request again.", {
      cause: error,
    });
  }
}

function incomplete(sent: number, received: number): Failure {
  return new Failure(
    "model_failed",
    `Only ${received} of the model's ${sent} samples arrived; send the request again.`,
  );
}
