/**
 * The stream between API and model tiers: the answer to `POST /invocations`. It is a run of frames, each a type
 * byte, the payload's length (uint32, big-endian) and the payload. A head comes first, an end or an error last; a
 * stream without either was cut. A failure before the first audio is an HTTP error with problem+json instead.
 */
import { Failure, isErrorCode } from "./errors.ts";
import type { WordTime } from "./speech.ts";

export const wireType = "application/vnd.svc-tts.frames";

export type WireFrame =
  /** `rate` in Hz, for all audio that follows. */
  | { readonly kind: "head"; readonly rate: number; readonly engine: string }
  | { readonly kind: "audio"; readonly samples: Int16Array }
  | { readonly kind: "words"; readonly words: readonly WordTime[] }
  | { readonly kind: "end"; readonly samples: number }
  | { readonly kind: "error"; readonly failure: Failure };

const types = { head: 1, audio: 2, words: 3, end: 4, error: 5 } as const;
const headerBytes = 5;
/** Far above any real frame (an engine's chunk is below a megabyte); stops a broken peer from taking all memory. */
const maxPayloadBytes = 16 * 1024 * 1024;

export function encodeFrame(frame: WireFrame): Buffer {
  const payload = encodePayload(frame);
  const out = Buffer.allocUnsafe(headerBytes + payload.length);
  out.writeUInt8(types[frame.kind], 0);
  out.writeUInt32BE(payload.length, 1);
  payload.copy(out, headerBytes);
  return out;
}

function encodePayload(frame: WireFrame): Buffer {
  switch (frame.kind) {
    case "audio": // samples are little-endian, as every machine that we run on keeps them
      return Buffer.from(frame.samples.buffer, frame.samples.byteOffset, frame.samples.byteLength);
    case "error":
      return json({ code: frame.failure.code, detail: frame.failure.message });
    case "head":
      return json({ rate: frame.rate, engine: frame.engine });
    case "words":
      return json(frame.words);
    case "end":
      return json({ samples: frame.samples });
  }
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/**
 * Reads frames out of a byte stream.
 * @throws Failure `model_failed` when the bytes are no frames, or end before an end or error frame.
 */
export async function* decodeFrames(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<WireFrame, void, void> {
  let rest: Buffer = Buffer.alloc(0);
  let finished = false;
  for await (const piece of bytes) {
    rest = rest.length === 0 ? Buffer.from(piece) : Buffer.concat([rest, piece]);
    for (let frame = takeFrame(rest); frame; frame = takeFrame(rest)) {
      rest = rest.subarray(frame.bytes);
      finished = frame.value.kind === "end" || frame.value.kind === "error";
      yield frame.value;
    }
  }
  if (!finished || rest.length > 0) {
    throw new Failure(
      "model_failed",
      "The model stopped before its speech was complete; send the request again.",
    );
  }
}

function takeFrame(bytes: Buffer): { value: WireFrame; bytes: number } | undefined {
  if (bytes.length < headerBytes) return undefined;
  const length = bytes.readUInt32BE(1);
  if (length > maxPayloadBytes) throw broken(`a frame of ${length} bytes`);
  const end = headerBytes + length;
  if (bytes.length < end) return undefined;
  return { value: decodePayload(bytes.readUInt8(0), bytes.subarray(headerBytes, end)), bytes: end };
}

function decodePayload(type: number, payload: Buffer): WireFrame {
  switch (type) {
    case types.audio: {
      if (payload.length % 2 !== 0) throw broken("half a sample");
      const copy = new Uint8Array(payload); // a view needs an even offset, which a stream does not promise
      return { kind: "audio", samples: new Int16Array(copy.buffer) };
    }
    case types.head:
      return { kind: "head", ...(parse(payload) as { rate: number; engine: string }) };
    case types.words:
      return { kind: "words", words: parse(payload) as WordTime[] };
    case types.end:
      return { kind: "end", ...(parse(payload) as { samples: number }) };
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
    `The model tier sent ${what}; its version may not fit this API tier's.`,
    { cause },
  );
}
