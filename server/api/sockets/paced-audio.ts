import type { Clock } from "../../../lib/clock.ts";

export interface PacedAudioOptions {
  readonly clock: Clock;
  /** Sends one message. Resolves when the client can receive more. */
  readonly send: (audio: Uint8Array) => Promise<void>;
  /** Called after each message with the duration of all audio that was sent. */
  readonly onSent: (seconds: number) => void;
  /** Discards the audio that was not sent yet. */
  readonly signal: AbortSignal;
}

/** Encoded audio with its duration. Encoders buffer, so the duration of a few bytes is an estimate. */
interface Piece {
  readonly audio: Uint8Array;
  readonly seconds: number;
}

/**
 * A message is sent this long before the client plays it. With much held audio the lead is longer, so that a delay in
 * the network is not audible. It shrinks while the held audio is sent, at 1 / (1 + `perHeldSecond`) of the speed of the
 * playback. So the pause before late audio is short.
 */
const lead = { leastSeconds: 0.15, perHeldSecond: 0.4, mostSeconds: 1 };
/** The duration of a message, except for audio that is sent late. */
const messageSeconds = 0.1;
/** A multiple of two bytes for whole samples, and of three for base64. */
const unitBytes = 6;
const longestMessageBytes = 8192 * unitBytes;
/** Audio above this limit is sent early: for one synthesis, and for all syntheses of the process. */
const mostHeldBytes = 512 * 1024;
const mostHeldOfAllBytes = 64 * 1024 * 1024;
/** Each synthesis may hold this number of bytes, even if all syntheses are above their limit. */
const leastHeldBytes = 32 * 1024;
let heldOfAllBytes = 0;

/**
 * Sends the audio of one synthesis at the speed at which the client plays it. When the synthesis ends, the rest is sent
 * immediately. An engine synthesizes a text phrase by phrase and works for other streams in between, but some clients
 * take a pause of 300 ms for the end of the speech, even if they still have audio to play (specification of the
 * WebSockets, sections 9 and 10).
 */
export class PacedAudio {
  readonly #options: PacedAudioOptions;
  #held: Piece[] = [];
  #heldBytes = 0;
  #heldSeconds = 0;
  #sentSeconds = 0;
  /** The time at which the client started to play, moved by the time that it waited for audio. */
  #startedAtMs: number;
  #isComplete = false;
  #isSending = false;
  #sending: Promise<void> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;
  #wakeSender: () => void = () => undefined;
  #reportProgress: () => void = () => undefined;

  constructor(options: PacedAudioOptions) {
    this.#options = options;
    this.#startedAtMs = options.clock.monotonicMs();
    options.signal.addEventListener("abort", () => this.#wakeSender(), { once: true });
  }

  /**
   * Adds audio. Resolves when more can be added.
   * @throws the error of `send`.
   */
  async add(audio: Uint8Array, seconds: number): Promise<void> {
    this.#throwFailure();
    this.#held.push({ audio, seconds });
    this.#countHeld(audio.length, seconds);
    if (!this.#isSending) this.#sending = this.#sendHeld();
    if (this.#isFull) this.#wakeSender();
    while (this.#isFull) await this.#progress();
    this.#throwFailure();
  }

  /**
   * Sends the held audio. Resolves when all audio was sent or discarded.
   * @throws the error of `send`.
   */
  async finish(): Promise<void> {
    this.#isComplete = true;
    this.#wakeSender();
    await this.#sending;
    this.#throwFailure();
  }

  get #isFull(): boolean {
    const most = heldOfAllBytes > mostHeldOfAllBytes ? leastHeldBytes : mostHeldBytes;
    return this.#heldBytes > most;
  }

  #countHeld(bytes: number, seconds: number): void {
    this.#heldBytes += bytes;
    this.#heldSeconds += seconds;
    heldOfAllBytes += bytes;
  }

  /** The function never rejects, because no caller waits for it in the meantime. */
  async #sendHeld(): Promise<void> {
    this.#isSending = true;
    try {
      while (this.#held.length > 0 && !this.#options.signal.aborted) {
        const waitMs = this.#waitMs();
        if (waitMs > 0) await this.#sleep(waitMs);
        else await this.#sendNext();
      }
    } catch (error) {
      this.#failure = { error };
    }
    this.#held = [];
    this.#countHeld(-this.#heldBytes, -this.#heldSeconds);
    // This is set without a pause after the last look at the held audio. Otherwise audio that is added in between would
    // have no sender.
    this.#isSending = false;
    this.#reportProgress();
  }

  #waitMs(): number {
    if (this.#isComplete || this.#isFull) return 0;
    const nowMs = this.#options.clock.monotonicMs();
    // A client without audio waits, so the time of its playback moves.
    this.#startedAtMs = Math.max(this.#startedAtMs, nowMs - this.#sentSeconds * 1000);
    const grown = lead.leastSeconds + lead.perHeldSecond * this.#heldSeconds;
    const leadSeconds = Math.min(lead.mostSeconds, grown);
    return this.#startedAtMs + (this.#sentSeconds - leadSeconds) * 1000 - nowMs;
  }

  async #sendNext(): Promise<void> {
    const [head, ...others] = this.#held;
    if (!head) return;
    const { audio, seconds } = head;
    const bytes = Math.min(audio.length, this.#messageBytes(head));
    const sentSeconds = (seconds * bytes) / audio.length;
    const rest = { audio: audio.subarray(bytes), seconds: seconds - sentSeconds };
    this.#held = rest.audio.length > 0 ? [rest, ...others] : others;
    this.#countHeld(-bytes, -sentSeconds);
    await this.#options.send(audio.subarray(0, bytes));
    this.#sentSeconds += sentSeconds;
    this.#options.onSent(this.#sentSeconds);
    this.#reportProgress();
  }

  #messageBytes({ audio, seconds }: Piece): number {
    if (this.#isComplete || this.#isFull || seconds <= messageSeconds) return longestMessageBytes;
    const units = Math.ceil((audio.length * messageSeconds) / seconds / unitBytes);
    return Math.min(longestMessageBytes, units * unitBytes);
  }

  async #sleep(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(waitMs, resolve);
    this.#wakeSender = () => {
      cancel();
      resolve();
    };
    await promise;
  }

  async #progress(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#reportProgress = resolve;
    await promise;
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
