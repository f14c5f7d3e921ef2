import {
  create,
  fromBinary,
  fromJson,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { type RequestEnvelope, requestSchema, responseSchema } from "./schema.ts";

/** The encoding of the server's messages. A client may send either encoding at any time. */
export type EnvelopeEncoding = "binary" | "json";

/** The payload of a message from the server. */
export type ResponsePayload = Exclude<
  NonNullable<MessageInitShape<typeof responseSchema>["payload"]>,
  { case: undefined }
>;

/**
 * Decodes a message according to the type of its frame. Unknown fields are ignored.
 * @throws Error if the frame is not a message of the protocol, or has two payloads.
 */
export function decodeRequest(frame: Uint8Array, isBinary: boolean): RequestEnvelope {
  if (isBinary) return fromBinary(requestSchema, frame);
  return fromJson(requestSchema, JSON.parse(Buffer.from(frame).toString()), { ignoreUnknownFields: true });
}

export function encodeResponse(
  encoding: EnvelopeEncoding,
  contextId: string,
  payload: ResponsePayload,
): string | Uint8Array {
  if (encoding === "json" && payload.case === "audio") return audioJson(contextId, payload.value);
  const envelope = create(responseSchema, { contextId, payload });
  return encoding === "binary" ? toBinary(responseSchema, envelope) : toJsonString(responseSchema, envelope);
}

/** Encodes audio with Node's base64, which is many times faster than the encoder of the protobuf library. */
function audioJson(contextId: string, audio: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = audio;
  return JSON.stringify({ contextId, audio: Buffer.from(buffer, byteOffset, byteLength).toString("base64") });
}
