import type { Clock } from "../../../lib/clock.ts";

export interface PacedAudioOptions {
  readonly clock: Clock;
  /** Sends one message. The promise resolves when the client can receive more audio. */
  readonly send: (audio: Uint8Array) => Promise<void>;
  /** The sender calls this function after each message with the duration of all audio that was sent. */
  readonly onSent: (seconds: number) => void;
  /** An abort of this signal discards the audio that was not sent yet. */
  readonly signal: AbortSignal;
}

/** Encoded audio and its duration. The duration is an estimate, because encoders buffer samples. */
interface Piece {
  readonly audio: Uint8Array;
  readonly seconds: number;
}

/**
 * The lead is the time between sending audio and its playback. For each second of held audio, the lead is
 * `perHeldSecond` longer, so that delays in the network are not audible. If the engine is late, the held
 * audio decreases and the lead shrinks with it. The client then receives the remaining audio over a longer
 * time, and the gap before the late audio is short.
 */
const lead = { leastSeconds: 0.15, perHeldSecond: 0.4, mostSeconds: 1 };
/** The duration of a message. Messages with late audio may be longer. */
const messageSeconds = 0.1;
/**
 * The length of a message is a multiple of this unit. Two bytes are a whole sample, and three bytes need no
 * padding in base64.
 */
const unitBytes = 6;
const longestMessageBytes = 8192 * unitBytes;
/**
 * Audio above these limits is sent early. The first limit applies to one synthesis, and the second limit to
 * all syntheses of the process.
 */
const mostHeldBytes = 512 * 1024;
const mostHeldOfAllBytes = 64 * 1024 * 1024;
/** Each synthesis may hold this number of bytes, even if all syntheses together are above their limit. */
const leastHeldBytes = 32 * 1024;
let heldOfAllBytes = 0;

/**
 * Sends the audio of one synthesis at the speed of its playback. When the synthesis ends, the rest is sent
 * immediately. Without this class, the messages of a stream would have pauses, because an engine works for
 * other streams between two phrases. Some clients treat a pause of 300 ms between two messages as the end of
 * the speech, even while they still play audio (specification of the WebSockets, sections 9 and 10).
 */
export class PacedAudio {
  readonly #options: PacedAudioOptions;
  #held: Piece[] = [];
  #heldBytes = 0;
  #heldSeconds = 0;
  #sentSeconds = 0;
  /** The time at which the client started to play, plus the time for which the client waited for audio. */
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
   * Adds audio. The promise resolves when the sender accepts more audio.
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
   * Sends the held audio. The promise resolves when all audio was sent or discarded.
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

  /**
   * Sends the held audio. The promise never rejects, because `add` does not await this promise. `add` and
   * `finish` throw the error later.
   */
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
    // No `await` may separate this line from the last check of the held audio. Otherwise audio that is added
    // in between would have no sender.
    this.#isSending = false;
    this.#reportProgress();
  }

  #waitMs(): number {
    if (this.#isComplete || this.#isFull) return 0;
    const nowMs = this.#options.clock.monotonicMs();
    // A client that has run out of audio waits, so its playback continues later by this time.
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
