/**
 * What an engine process and its owner say to each other over one socket: a type byte, the payload's length (uint32,
 * big-endian), the payload. The process works on one job at a time and, once it has sent `windowChunks` pieces of
 * audio, waits for an acknowledgement before each further one; so a stop reaches it within that window.
 */
export const messageTypes = {
  /** Owner → process: JSON of `{id, utterance}`. */
  speak: 1,
  /** Owner → process: one piece of audio of this job arrived (uint32 job id). */
  ack: 2,
  /** Owner → process: stop this job (uint32 job id). */
  stop: 3,
  /** Process → owner, once: it can speak. */
  ready: 16,
  /** Process → owner: uint32 job id, uint32 rate in Hz, little-endian samples. */
  audio: 17,
  /** Process → owner: JSON of `{id, times}`. */
  times: 18,
  /** Process → owner: the job's audio is complete or was stopped (uint32 job id). */
  done: 19,
  /** Process → owner: JSON of `{id, message}`; id 0 when it cannot start. */
  failed: 20,
} as const;

export interface Message {
  readonly type: number;
  readonly payload: Buffer;
}

/** Pieces of audio that may be under way unacknowledged. */
export const windowChunks = 8;
const headerBytes = 5;
/** A piece of audio is a tenth of a second, a job one short utterance: far below this. */
const maxPayloadBytes = 4 * 1024 * 1024;
/** The socket's descriptor in the engine process. */
export const engineSocket = 3;

export function encodeMessage(type: number, payload: Buffer): Buffer {
  const out = Buffer.allocUnsafe(headerBytes + payload.length);
  out.writeUInt8(type, 0);
  out.writeUInt32BE(payload.length, 1);
  payload.copy(out, headerBytes);
  return out;
}

export function jsonMessage(type: number, value: unknown): Buffer {
  return encodeMessage(type, Buffer.from(JSON.stringify(value)));
}

export function idMessage(type: number, id: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(id);
  return encodeMessage(type, payload);
}

export function audioMessage(id: number, rate: number, samples: Int16Array): Buffer {
  const head = Buffer.allocUnsafe(8);
  head.writeUInt32BE(id, 0);
  head.writeUInt32BE(rate, 4);
  const audio = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  return encodeMessage(messageTypes.audio, Buffer.concat([head, audio]));
}

export function readAudio(payload: Buffer): { id: number; rate: number; samples: Int16Array } {
  const bytes = new Uint8Array(payload.subarray(8)); // copied: a view needs an even offset
  return {
    id: payload.readUInt32BE(0),
    rate: payload.readUInt32BE(4),
    samples: new Int16Array(bytes.buffer, 0, bytes.length >> 1),
  };
}

/** Splits a byte stream into messages, whatever its pieces. */
export class MessageSplitter {
  #rest: Buffer = Buffer.alloc(0);

  /** @throws Error when a length is beyond all reason. */
  *push(piece: Buffer): Generator<Message> {
    this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    while (this.#rest.length >= headerBytes) {
      const length = this.#rest.readUInt32BE(1);
      if (length > maxPayloadBytes) throw new Error(`an engine message of ${length} bytes`);
      if (this.#rest.length < headerBytes + length) return;
      const type = this.#rest.readUInt8(0);
      const payload = this.#rest.subarray(headerBytes, headerBytes + length);
      this.#rest = this.#rest.subarray(headerBytes + length);
      yield { type, payload };
    }
  }
}
