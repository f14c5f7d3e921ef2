import {
  create,
  fromBinary,
  fromJson,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { type RequestEnvelope, requestSchema, responseSchema } from "./schema.ts";

/** The format of the server's messages. A client may use either at any time. */
export type EnvelopeEncoding = "binary" | "json";

/** The payload of a message from the server. */
export type ResponsePayload = Exclude<
  NonNullable<MessageInitShape<typeof responseSchema>["payload"]>,
  { case: undefined }
>;

/**
 * Decodes a message by the type of its frame. Fields of later schemas are ignored.
 * @throws Error if it is not a message of the protocol, or has two payloads.
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

/** Node encodes base64 many times faster than the library, which encodes byte by byte. */
function audioJson(contextId: string, audio: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = audio;
  return JSON.stringify({ contextId, audio: Buffer.from(buffer, byteOffset, byteLength).toString("base64") });
}
