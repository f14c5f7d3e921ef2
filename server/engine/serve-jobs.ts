/**
 * The engine process's side of the protocol. Synthesis blocks, so everything here blocks too: a process does nothing
 * but read a job, speak it, and wait where its owner is behind.
 */
import { readSync, writeSync } from "node:fs";
import type { TokenTime, Utterance } from "../speech.ts";
import {
  audioMessage,
  encodeMessage,
  engineSocket,
  idMessage,
  jsonMessage,
  type Message,
  MessageSplitter,
  messageTypes,
  windowChunks,
} from "./protocol.ts";

/** Where a synthesizer puts what it makes. Both return false when the job was stopped. */
export interface Sink {
  audio(samples: Int16Array, rate: number): boolean;
  times(times: readonly TokenTime[]): boolean;
}

export type Synthesize = (utterance: Utterance, sink: Sink) => void;

/** Speaks jobs until the owner closes the socket. */
export function serveJobs(synthesize: Synthesize): void {
  const messages = readMessages();
  writeAll(encodeMessage(messageTypes.ready, Buffer.alloc(0)));
  for (const message of messages) {
    if (message.type !== messageTypes.speak) continue; // late word about a finished job
    const job = JSON.parse(message.payload.toString()) as { id: number; utterance: Utterance };
    speakJob(job, synthesize, messages);
  }
}

export function reportStartFailure(message: string): void {
  writeAll(jsonMessage(messageTypes.failed, { id: 0, message }));
}

function speakJob(
  { id, utterance }: { id: number; utterance: Utterance },
  synthesize: Synthesize,
  messages: Iterator<Message>,
): void {
  const sink = new JobSink(id, messages);
  try {
    synthesize(utterance, sink);
    writeAll(idMessage(messageTypes.done, id));
  } catch (error) {
    writeAll(jsonMessage(messageTypes.failed, { id, message: String(error) }));
  }
}

class JobSink implements Sink {
  readonly #id: number;
  readonly #messages: Iterator<Message>;
  #unacknowledged = 0;
  #stopped = false;

  constructor(id: number, messages: Iterator<Message>) {
    this.#id = id;
    this.#messages = messages;
  }

  audio(samples: Int16Array, rate: number): boolean {
    while (!this.#stopped && this.#unacknowledged >= windowChunks) this.#hear();
    if (this.#stopped) return false;
    if (samples.length > 0) {
      writeAll(audioMessage(this.#id, rate, samples));
      this.#unacknowledged++;
    }
    return true;
  }

  times(times: readonly TokenTime[]): boolean {
    if (!this.#stopped && times.length > 0) {
      writeAll(jsonMessage(messageTypes.times, { id: this.#id, times }));
    }
    return !this.#stopped;
  }

  #hear(): void {
    const next = this.#messages.next();
    if (next.done) this.#stopped = true;
    else if (next.value.type === messageTypes.speak) throw new Error("a job came before the last one ended");
    else if (next.value.payload.readUInt32BE(0) === this.#id) {
      if (next.value.type === messageTypes.stop) this.#stopped = true;
      else this.#unacknowledged--;
    }
  }
}

/** An iterator that can be taken up again after a loop has left it, as a plain generator cannot. */
function readMessages(): IterableIterator<Message> {
  const splitter = new MessageSplitter();
  const waiting: Message[] = [];
  const piece = Buffer.alloc(64 * 1024);
  const next = (): IteratorResult<Message> => {
    while (waiting.length === 0) {
      const length = readSync(engineSocket, piece);
      if (length === 0) return { done: true, value: undefined };
      waiting.push(...splitter.push(Buffer.from(piece.subarray(0, length))));
    }
    const value = waiting.shift();
    return value ? { done: false, value } : { done: true, value: undefined };
  };
  return {
    next,
    [Symbol.iterator]() {
      return this;
    },
  };
}

function writeAll(bytes: Buffer): void {
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(engineSocket, bytes, sent);
}
