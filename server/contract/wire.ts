/**
 * The stream between the API tier and the model tier: the response to `POST /invocations`. The stream consists of
 * frames, which are messages of `framing.ts`. The first frame is a head. The last frame is an end or an error; a
 * stream without an end or an error was interrupted. If the model fails before the first audio, the response is
 * an HTTP error with a problem document instead.
 */
import { Failure, isErrorCode } from "./errors.ts";
import { bytesOf, type Framed, joinFramed, type Message, MessageSplitter, samplesOf } from "./framing.ts";
import type { WordTimestamp } from "./speech.ts";

export const wireType = "application/vnd.svc-tts.frames";
/** The response header with the load of the replica, in the format of Open Request Cost Aggregation. */
export const orcaHeader = "endpoint-load-metrics";
/**
 * A header of `POST /invocations`. If its value is `1`, a full replica rejects the request and does not queue
 * it, because another replica may have capacity.
 */
export const noQueueHeader = "x-svc-no-queue";
/**
 * A header of `POST /invocations`. Its value is the percent-encoded ID of the request's API key, which the
 * fair queue needs.
 */
export const callerHeader = "x-svc-caller";

export type WireFrame =
  /** The `rate` is in Hz and applies to all following audio. */
  | { readonly kind: "head"; readonly rate: number; readonly engine: string }
  | { readonly kind: "audio"; readonly samples: Int16Array }
  | { readonly kind: "words"; readonly words: readonly WordTimestamp[] }
  /**
   * The frame contains out-of-vocabulary words. The model tier sends this frame only if `saveOovs` is true,
   * because API tiers of older versions do not know this type of frame.
   */
  | { readonly kind: "oovs"; readonly words: readonly string[] }
  /** `workMs` is the duration of the synthesis. Model tiers of older versions do not send this field. */
  | { readonly kind: "end"; readonly samples: number; readonly workMs?: number }
  | { readonly kind: "error"; readonly failure: Failure };

const types = { head: 1, audio: 2, words: 3, end: 4, error: 5, oovs: 6 } as const;
/**
 * Limits the memory that a faulty peer can occupy. A frame of a correct peer is smaller than one megabyte.
 */
const maxPayloadBytes = 16 * 1024 * 1024;

export function encodeFrame(frame: WireFrame): Buffer {
  return encodeFrames([frame]);
}

export function encodeFrames(frames: readonly WireFrame[]): Buffer {
  return joinFramed(
    frames.map((frame): Framed => ({ type: types[frame.kind], payload: [payloadOf(frame)] })),
  );
}

function payloadOf(frame: WireFrame): Buffer {
  switch (frame.kind) {
    case "audio":
      return bytesOf(frame.samples);
    case "error":
      return json({ code: frame.failure.code, detail: frame.failure.message });
    case "head":
      return json({ rate: frame.rate, engine: frame.engine });
    case "words":
    case "oovs":
      return json(frame.words);
    case "end":
      return json({ samples: frame.samples, workMs: frame.workMs });
  }
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/**
 * Decodes frames from a byte stream.
 * @throws Failure `model_failed` if the bytes are invalid, or the stream ends before an end or error frame.
 */
export async function* decodeFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<WireFrame, void, void> {
  const splitter = new MessageSplitter(maxPayloadBytes, (length) => broken(`a frame of ${length} bytes`));
  let finished = false;
  for await (const piece of bytes) {
    for (const message of splitter.push(piece)) {
      const frame = decodeFrame(message);
      finished = frame.kind === "end" || frame.kind === "error";
      yield frame;
    }
  }
  if (!finished || splitter.isAmidst) {
    throw new Failure(
      "model_failed",
      "The model stopped before its speech was complete; send the request again.",
    );
  }
}

function decodeFrame({ type, payload }: Message): WireFrame {
  switch (type) {
    case types.audio:
      if (payload.length % 2 !== 0) throw broken("half a sample");
      return { kind: "audio", samples: samplesOf(payload) };
    case types.head:
      return { kind: "head", ...(parse(payload) as { rate: number; engine: string }) };
    case types.words:
      return { kind: "words", words: parse(payload) as WordTimestamp[] };
    case types.oovs:
      return { kind: "oovs", words: parse(payload) as string[] };
    case types.end:
      return { kind: "end", ...(parse(payload) as { samples: number; workMs?: number }) };
    case types.error: {
      const { code, detail } = parse(payload) as { code: unknown; detail: string };
      return { kind: "error", failure: new Failure(isErrorCode(code) ? code : "model_failed", detail) };
    }
    default:
      throw broken(`a frame of unknown type ${type}`);
  }
}

function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch (cause) {
    throw broken("a frame that is not JSON", cause);
  }
}

function broken(what: string, cause?: unknown): Failure {
  return new Failure(
    "model_failed",
    `The model tier sent ${what}; its version may be incompatible with this API tier.`,
    { cause },
  );
}
