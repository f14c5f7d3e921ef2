import { bytesOf, joinFramed, MessageSplitter, samplesOf } from "../../contract/framing.ts";

/**
 * The protocol between an engine process and its owner, the model tier. The protocol uses one socket and the
 * messages of `framing.ts`. The process runs one job at a time. After `windowChunks` pieces of audio, the
 * process waits for an acknowledgement before each further piece. The process looks for a stop before each
 * piece, without waiting.
 */
export const messageTypes = {
  /** Owner → process: synthesize an utterance (JSON of `{id, utterance}`). */
  speak: 1,
  /** Owner → process: one piece of this job's audio arrived (uint32 job id). */
  ack: 2,
  /** Owner → process: stop this job (uint32 job id). */
  stop: 3,
  /** Owner → process: read an utterance (JSON of `{id, utterance}`). The response is `sounds` and `done`. */
  read: 4,
  /**
   * Process → owner, once: the process is ready. The text names the engine's variant, or is empty if the
   * engine has only one variant.
   */
  ready: 16,
  /** Process → owner: the process has read this job and works on it (uint32 job id). */
  begun: 22,
  /** Process → owner: a piece of audio (uint32 job id, uint32 rate in Hz, little-endian samples). */
  audio: 17,
  /** Process → owner: the times of tokens (JSON of `{id, times}`). */
  times: 18,
  /** Process → owner: the job's audio is complete, or the job was stopped (uint32 job id). */
  done: 19,
  /** Process → owner: the job failed (JSON of `{id, message}`). The id is 0 if the process cannot start. */
  failed: 20,
  /** Process → owner: the sounds of each token (JSON of `{id, sounds}`). */
  sounds: 21,
} as const;

/** The number of pieces of audio that may be unacknowledged. */
export const windowChunks = 4;
/**
 * The size limit of a message. Real messages are far smaller: a piece of audio lasts at most a few seconds,
 * and a job is one short utterance.
 */
const maxPayloadBytes = 4 * 1024 * 1024;
/** The file descriptor of the socket in the engine process. */
export const engineSocket = 3;

export function encodeMessage(type: number, ...payload: readonly Uint8Array[]): Buffer {
  return joinFramed([{ type, payload }]);
}

export function jsonMessage(type: number, value: unknown): Buffer {
  return encodeMessage(type, Buffer.from(JSON.stringify(value)));
}

export function idMessage(type: number, id: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(id);
  return encodeMessage(type, payload);
}

/**
 * Encodes a message with audio.
 * @param pieces the samples of the message, which are joined.
 */
export function audioMessage(id: number, rate: number, pieces: readonly Int16Array[]): Buffer {
  const head = Buffer.allocUnsafe(8);
  head.writeUInt32BE(id, 0);
  head.writeUInt32BE(rate, 4);
  return encodeMessage(messageTypes.audio, head, ...pieces.map(bytesOf));
}

export function readAudio(payload: Buffer): { id: number; rate: number; samples: Int16Array } {
  return {
    id: payload.readUInt32BE(0),
    rate: payload.readUInt32BE(4),
    samples: samplesOf(payload.subarray(8)),
  };
}

export function messageSplitter(): MessageSplitter {
  return new MessageSplitter(
    maxPayloadBytes,
    (bytes) => new Error(`an engine message has ${bytes} bytes; at most ${maxPayloadBytes} are allowed`),
  );
}
