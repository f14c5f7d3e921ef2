/**
 * The format of messages on a byte stream: a type byte, the length of the payload (uint32, big-endian), and the
 * payload.
 */

const headerBytes = 5;

export interface Framed {
  readonly type: number;
  /** The payload in pieces, which `joinFramed` concatenates. */
  readonly payload: readonly Uint8Array[];
}

/** Encodes messages into one buffer. Every byte is copied once. */
export function joinFramed(messages: readonly Framed[]): Buffer {
  const lengths = messages.map(({ payload }) => payload.reduce((sum, part) => sum + part.length, 0));
  const out = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + headerBytes + length, 0));
  let at = 0;
  for (const [i, { type, payload }] of messages.entries()) {
    at = out.writeUInt8(type, at);
    at = out.writeUInt32BE(lengths[i] ?? 0, at);
    for (const part of payload) {
      out.set(part, at);
      at += part.length;
    }
  }
  return out;
}

export interface Message {
  readonly type: number;
  readonly payload: Buffer;
}

/**
 * Splits a byte stream into messages. A piece of the stream may end anywhere in a message. A message within one
 * piece is not copied. A message in several pieces is copied once.
 */
export class MessageSplitter {
  readonly #tooLong: (bytes: number) => Error;
  readonly #maxPayloadBytes: number;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;
  /** The header of the message whose payload has not arrived completely. */
  #head: { readonly type: number; readonly length: number } | undefined;

  /**
   * Creates a splitter.
   * @param tooLong creates the error for a payload above the limit.
   */
  constructor(maxPayloadBytes: number, tooLong: (bytes: number) => Error) {
    this.#maxPayloadBytes = maxPayloadBytes;
    this.#tooLong = tooLong;
  }

  /** Whether only a part of a message has arrived. */
  get isAmidst(): boolean {
    return this.#bytes > 0 || this.#head !== undefined;
  }

  *push(piece: Uint8Array): Generator<Message, void, void> {
    this.#pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.length));
    this.#bytes += piece.length;
    for (let message = this.#take(); message; message = this.#take()) yield message;
  }

  #take(): Message | undefined {
    this.#head ??= this.#takeHead();
    if (!this.#head || this.#bytes < this.#head.length) return undefined;
    const { type, length } = this.#head;
    this.#head = undefined;
    return { type, payload: this.#cut(length) };
  }

  #takeHead(): { type: number; length: number } | undefined {
    if (this.#bytes < headerBytes) return undefined;
    const head = this.#cut(headerBytes);
    const length = head.readUInt32BE(1);
    if (length > this.#maxPayloadBytes) throw this.#tooLong(length);
    return { type: head.readUInt8(0), length };
  }

  /** Removes and returns the next bytes that have arrived. */
  #cut(length: number): Buffer {
    this.#bytes -= length;
    const first = this.#pieces[0];
    if (first && first.length >= length) return this.#cutFirst(first, length);
    const out = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; ) {
      const piece = this.#pieces[0];
      if (!piece) throw new Error("the message splitter holds fewer bytes than it counted");
      at += this.#cutFirst(piece, Math.min(piece.length, length - at)).copy(out, at);
    }
    return out;
  }

  #cutFirst(first: Buffer, length: number): Buffer {
    if (first.length > length) this.#pieces[0] = first.subarray(length);
    else this.#pieces.shift();
    return first.subarray(0, length);
  }
}

/** Returns the bytes as samples: a view if their offset in memory is even, otherwise a copy. */
export function samplesOf(bytes: Buffer): Int16Array {
  const isEven = bytes.byteOffset % 2 === 0;
  const { buffer, byteOffset } = isEven ? bytes : new Uint8Array(bytes);
  return new Int16Array(buffer, byteOffset, bytes.length >> 1);
}

/** Returns a view of the samples as bytes. All supported machines store samples in little-endian order. */
export function bytesOf({ buffer, byteOffset, byteLength }: Int16Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
