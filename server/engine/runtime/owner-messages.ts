import { readSync } from "node:fs";
import koffi from "koffi";
import type { Message } from "../../contract/framing.ts";
import { messageSplitter } from "./protocol.ts";

/** The event POLLIN of poll(2). */
const readable = 1;
/** The function poll(2). Node has no function that looks at a blocking socket without waiting. */
const poll = koffi.load(null).func("int poll(void *, ulong, int)") as (
  entries: Buffer,
  count: number,
  timeoutMs: number,
) => number;

/**
 * The messages from the owner of an engine process. Synthesis blocks the process, so the messages are read
 * with blocking calls. Unlike a generator, the iterator can be used again after a loop has ended early.
 */
export class OwnerMessages implements IterableIterator<Message> {
  readonly #socket: number;
  readonly #splitter = messageSplitter();
  readonly #waiting: Message[] = [];
  readonly #piece = Buffer.alloc(64 * 1024);
  /** A `struct pollfd`: the descriptor, the requested events and the returned events. */
  readonly #entry = Buffer.alloc(8);

  constructor(socket: number) {
    this.#socket = socket;
    this.#entry.writeInt32LE(socket, 0);
    this.#entry.writeInt16LE(readable, 4);
  }

  /** Waits for the next message. The iteration is done after the owner has closed the socket. */
  next(): IteratorResult<Message> {
    while (this.#waiting.length === 0) {
      const length = readSync(this.#socket, this.#piece);
      if (length === 0) return { done: true, value: undefined };
      this.#waiting.push(...this.#splitter.push(Buffer.from(this.#piece.subarray(0, length))));
    }
    const value = this.#waiting.shift();
    return value ? { done: false, value } : { done: true, value: undefined };
  }

  /**
   * Returns whether `next` has something to read: a message, or the end of the socket. If only the start of a
   * message has arrived, `next` waits for its rest, which the owner has already sent.
   */
  hasArrived(): boolean {
    return this.#waiting.length > 0 || poll(this.#entry, 1, 0) > 0;
  }

  [Symbol.iterator](): this {
    return this;
  }
}
