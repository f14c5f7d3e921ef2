/**
 * The engine process's side of the protocol. Synthesis blocks the process, so this module uses blocking reads
 * and writes. The process reads a job, runs the job, and waits if its owner has not acknowledged enough
 * audio.
 */
import { writeSync } from "node:fs";
import type { Message } from "../../contract/framing.ts";
import type { Sounds, TokenTimestamp, Utterance } from "../../contract/speech.ts";
import { OwnerMessages } from "./owner-messages.ts";
import {
  audioMessage,
  encodeMessage,
  engineSocket,
  idMessage,
  jsonMessage,
  messageTypes,
  windowChunks,
} from "./protocol.ts";

/**
 * Receives the output of a synthesizer. A sink keeps the samples without a copy, so the synthesizer must not
 * change the samples afterwards. `audio` and `times` return false if the job was stopped.
 */
export interface Sink {
  audio(samples: Int16Array, rate: number): boolean;
  times(times: readonly TokenTimestamp[]): boolean;
  isStopped(): boolean;
}

export type Synthesize = (utterance: Utterance, sink: Sink) => void | Promise<void>;
/** Returns the sounds of each token, for an engine that can read without synthesis. */
export type Read = (utterance: Utterance) => readonly Sounds[];

/**
 * Runs jobs until the owner closes the socket.
 * @param variant the engine's variant; empty if the engine has only one variant.
 */
export async function serveJobs(synthesize: Synthesize, read?: Read, variant = ""): Promise<void> {
  const messages = new OwnerMessages(engineSocket);
  writeAll(encodeMessage(messageTypes.ready, Buffer.from(variant)));
  for (const message of messages) {
    // Other messages are ignored, because they refer to a job that has ended.
    if (message.type === messageTypes.speak) await speakJob(jobOf(message), synthesize, messages);
    else if (message.type === messageTypes.read && read) readJob(jobOf(message), read);
  }
}

interface Job {
  readonly id: number;
  readonly utterance: Utterance;
}

function jobOf({ payload }: Message): Job {
  return JSON.parse(payload.toString()) as Job;
}

export function reportStartFailure(message: string): void {
  writeAll(jsonMessage(messageTypes.failed, { id: 0, message }));
}

function readJob({ id, utterance }: Job, read: Read): void {
  writeAll(idMessage(messageTypes.begun, id));
  try {
    writeAll(jsonMessage(messageTypes.sounds, { id, sounds: read(utterance) }));
    writeAll(idMessage(messageTypes.done, id));
  } catch (error) {
    writeAll(jsonMessage(messageTypes.failed, { id, message: String(error) }));
  }
}

async function speakJob(
  { id, utterance }: Job,
  synthesize: Synthesize,
  messages: OwnerMessages,
): Promise<void> {
  writeAll(idMessage(messageTypes.begun, id));
  const sink = new JobSink(id, messages);
  try {
    await synthesize(utterance, sink);
    sink.finish();
    writeAll(idMessage(messageTypes.done, id));
  } catch (error) {
    writeAll(jsonMessage(messageTypes.failed, { id, message: String(error) }));
  }
}

/**
 * The duration of the samples in one message. The first message is short so that it arrives early. Each
 * further message is twice as long, because every message has a fixed cost.
 */
const pieceMs = { first: 50, most: 400 };

class JobSink implements Sink {
  readonly #id: number;
  readonly #messages: OwnerMessages;
  #held: Int16Array[] = [];
  #heldSamples = 0;
  #rate = 0;
  #pieceMs = pieceMs.first;
  #unacknowledged = 0;
  #stopped = false;

  constructor(id: number, messages: OwnerMessages) {
    this.#id = id;
    this.#messages = messages;
  }

  audio(samples: Int16Array, rate: number): boolean {
    this.#rate = rate;
    this.#heldSamples += samples.length;
    this.#held.push(samples);
    if (this.#heldSamples * 1000 < this.#pieceMs * rate) return !this.isStopped();
    this.#pieceMs = Math.min(2 * this.#pieceMs, pieceMs.most);
    return this.#send();
  }

  /** Sends the samples that are held back. */
  finish(): void {
    this.#send();
  }

  /** Reads the messages that have arrived, so that a stop takes effect before the next piece. */
  isStopped(): boolean {
    while (!this.#stopped && this.#messages.hasArrived()) this.#receive();
    return this.#stopped;
  }

  #send(): boolean {
    while (!this.isStopped() && this.#unacknowledged >= windowChunks) this.#receive();
    if (!this.#stopped && this.#heldSamples > 0) {
      writeAll(audioMessage(this.#id, this.#rate, this.#held));
      this.#unacknowledged++;
    }
    this.#held = [];
    this.#heldSamples = 0;
    return !this.#stopped;
  }

  times(times: readonly TokenTimestamp[]): boolean {
    if (this.isStopped()) return false;
    if (times.length > 0) writeAll(jsonMessage(messageTypes.times, { id: this.#id, times }));
    return true;
  }

  #receive(): void {
    const next = this.#messages.next();
    if (next.done) this.#stopped = true;
    else if (next.value.type === messageTypes.speak || next.value.type === messageTypes.read)
      throw new Error("a job arrived before the previous job ended");
    else if (next.value.payload.readUInt32BE(0) === this.#id) {
      if (next.value.type === messageTypes.stop) this.#stopped = true;
      else this.#unacknowledged--;
    }
  }
}

function writeAll(bytes: Buffer): void {
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(engineSocket, bytes, sent);
}
