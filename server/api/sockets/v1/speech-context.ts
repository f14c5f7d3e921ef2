import { ContinuedEncoder } from "../../../audio/continued-encoder.ts";
import { Failure } from "../../../contract/errors.ts";
import type { WordTimestamp } from "../../../contract/speech.ts";
import { encoderOf } from "../../request/formats.ts";
import { isOpus } from "../../request/variants.ts";
import { toFailure } from "../../respond/problems.ts";
import { RefusedCredential } from "../socket-identity.ts";
import { longestTextOf, speechRequestFor } from "../socket-settings.ts";
import { type SocketCaller, SocketSynthesis, type SocketSynthesisServices } from "../socket-synthesis.ts";
import { type SessionAction, type Synthesis, TextSession } from "../text-session.ts";
import type { ContextSettings } from "./context-settings.ts";
import type { ResponsePayload } from "./envelopes.ts";
import { errorKindOf } from "./error-kinds.ts";

/** The highest number of characters of one context that wait for synthesis. */
const longestBacklog = 10_000;
/** The only context ID in the text session. The turn of the session ends when the client ends the context. */
const sessionName = "context";
const nanosPerSecond = 1e9;

export interface SpeechContextOptions {
  readonly parts: SocketSynthesisServices;
  readonly caller: SocketCaller;
  readonly settings: ContextSettings;
  /** Sends a payload. The promise resolves when the client can receive more. */
  readonly send: (payload: ResponsePayload) => Promise<void>;
  /** The context calls this function once, with its last payload, unless `stop` was called before. */
  readonly onEnd: (last: ResponsePayload) => void;
  /**
   * The context calls this function after a synthesis if no other synthesis starts and the context continues.
   */
  readonly onRest: () => void;
  /** The context calls this function before `onEnd` if the client's API key is no longer valid. */
  readonly onRefused: (failure: RefusedCredential) => void;
}

/** Synthesizes the texts of one context of a v1 socket as one stream of audio. */
export class SpeechContext {
  readonly #options: SpeechContextOptions;
  readonly #session: TextSession;
  /** The common encoder for all syntheses of the context, which only formats with a container need. */
  readonly #encoder: ContinuedEncoder | undefined;
  readonly #words: WordTimestamp[] = [];
  #running: SocketSynthesis | undefined;
  /** This promise resolves when the latest synthesis no longer uses the encoder. */
  #speaking: Promise<void> = Promise.resolve();
  #seconds = 0;
  #takesText: boolean;
  #isCompleting = false;
  #isOver = false;

  constructor(options: SpeechContextOptions) {
    const { settings } = options;
    const { invocation, format, rate } = settings.socket.speech;
    this.#options = options;
    this.#session = new TextSession({
      ...{ mode: settings.socket.segment, language: invocation.lang, commas: false, clearMode: "abort" },
      ...{ longestText: longestTextOf(settings.socket), longestBacklog },
    });
    const isContainer = format === "wav" || isOpus(format);
    this.#encoder = isContainer ? new ContinuedEncoder(() => encoderOf(format, "socket")(rate)) : undefined;
    this.#takesText = settings.wholeText === undefined;
  }

  /**
   * Whether the context accepts more text. The value is false if `start` contained the whole text, or the
   * client has ended the context.
   */
  get takesText(): boolean {
    return this.#takesText;
  }

  /** Whether audio of this context is being synthesized or completed. */
  get isSpeaking(): boolean {
    return this.#running !== undefined || this.#isCompleting;
  }

  /**
   * Synthesizes the text of the `start` message. The method has no effect if the client sends the text
   * separately.
   */
  begin(): void {
    const { wholeText } = this.#options.settings;
    if (wholeText === undefined) return;
    this.#act(this.#session.text({ text: wholeText, contextId: sessionName }));
    this.#act(this.#session.eos());
  }

  text(text: string): void {
    const needsSpace = this.#options.settings.textsAreSentences && !/\s$/.test(text);
    const separated = needsSpace ? `${text} ` : text;
    this.#act(this.#session.text({ text: separated, contextId: sessionName }));
  }

  /** Marks the text as complete. Only the first call has an effect. */
  end(): void {
    this.#takesText = false;
    this.#act(this.#session.eos());
  }

  /** Stops the synthesis. The context sends no further message. */
  stop(): void {
    this.#isOver = true;
    this.#takesText = false;
    this.#running?.stop();
    this.#running = undefined;
    void this.#freeEncoder();
  }

  async #freeEncoder(): Promise<void> {
    // The synthesis must end first, because another stream may use the encoder after `close`.
    await this.#speaking;
    await this.#encoder?.close();
  }

  #act(actions: readonly SessionAction[]): void {
    for (const action of actions) {
      if (this.#isOver) return;
      if (action.kind === "speak") this.#speaking = this.#speak(action.synthesis);
      else if (action.kind === "close" && action.reason === "ended") void this.#complete();
      else if (action.kind === "close") {
        this.#fail(
          new Failure(
            "invalid_request",
            "The text of this context is too long; split it into several contexts.",
          ),
        );
      }
    }
  }

  async #speak(synthesis: Synthesis): Promise<void> {
    const { parts, caller, settings, send } = this.#options;
    const encoder = this.#encoder;
    try {
      const speech = new SocketSynthesis(parts, caller, {
        number: synthesis.number,
        speechRequest: speechRequestFor(settings.socket, synthesis),
        ...(encoder && { createEncoder: () => encoder.part() }),
      });
      this.#running = speech;
      await speech.run((audio) => send({ case: "audio", value: audio }));
      if (this.#isOver) return;
      this.#running = undefined;
      this.#words.push(...speech.words.map((word) => later(word, this.#seconds)));
      this.#seconds += speech.encodedSeconds;
      this.#act(this.#session.finished(synthesis.number));
      if (!this.isSpeaking && !this.#isOver) this.#options.onRest();
    } catch (error) {
      this.#fail(toFailure(error));
    }
  }

  async #complete(): Promise<void> {
    this.#isCompleting = true;
    try {
      const rest = await this.#encoder?.finish();
      if (this.#isOver) return;
      if (this.#seconds === 0)
        throw new Failure("invalid_request", "The text contains no words to synthesize.");
      if (rest && rest.length > 0) void this.#options.send({ case: "audio", value: rest });
      this.#end({ case: "done", value: this.#report() });
    } catch (error) {
      this.#fail(toFailure(error));
    }
  }

  /** Returns the word timestamps, relative to the start of the context at normal speed. */
  #report() {
    const { settings } = this.#options;
    if (!settings.withTimestamps) return {};
    const { timeScale } = settings.socket;
    const spans = this.#words.map(({ word, start, end }) => ({
      text: word,
      start: durationOf(start / timeScale),
      end: durationOf(end / timeScale),
    }));
    return { timestamps: { status: { code: 0 }, spans } };
  }

  #fail(failure: Failure): void {
    if (this.#isOver) return;
    if (failure instanceof RefusedCredential) this.#options.onRefused(failure);
    const { requestId } = this.#options.caller;
    const { message } = failure;
    this.#end({ case: "error", value: { kind: errorKindOf(failure), message, requestId } });
  }

  #end(last: ResponsePayload): void {
    this.stop();
    this.#options.onEnd(last);
  }
}

function later({ word, start, end }: WordTimestamp, seconds: number): WordTimestamp {
  return { word, start: start + seconds, end: end + seconds };
}

function durationOf(seconds: number) {
  const nanos = Math.round(seconds * nanosPerSecond);
  return { seconds: BigInt(Math.floor(nanos / nanosPerSecond)), nanos: nanos % nanosPerSecond };
}
