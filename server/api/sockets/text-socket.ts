import type { RawData, WebSocket } from "ws";
import type { Failure } from "../../contract/errors.ts";
import type { WordTimestamp } from "../../contract/speech.ts";
import type { OpenSocket } from "../lifecycle/open-sockets.ts";
import type { ClearMode } from "../request/socket-options.ts";
import { toFailure } from "../respond/problems.ts";
import type { Dialect } from "./dialects.ts";
import { RefusedCredential } from "./socket-identity.ts";
import { longestTextOf, type SocketSettings, speechRequestFor } from "./socket-settings.ts";
import { type SocketCaller, SocketSynthesis, type SocketSynthesisServices } from "./socket-synthesis.ts";
import { sendFrame } from "./socket-writer.ts";
import { type CloseReason, type SessionAction, type Synthesis, TextSession } from "./text-session.ts";

/** The close codes and reasons. A reason has at most 123 bytes, and never contains the client's text. */
const closings: Readonly<Record<CloseReason, readonly [code: number, reason: string]>> = {
  ended: [1000, ""],
  draining: [1001, "going away"],
  tooLong: [1011, "400: text is too long"],
};
const refused = 1008;
const overloaded = [1013, "503: try again later"] as const;
const broken = 1011;

const longestBacklog = 10_000;
/** If the client sends no message for this time, the open turn ends. */
const silenceMs = 30_000;

export interface TextSocketOptions {
  readonly parts: SocketSynthesisServices;
  readonly socket: WebSocket;
  readonly dialect: Dialect;
  readonly settings: SocketSettings;
  readonly caller: SocketCaller;
  readonly clearMode: ClearMode;
}

/**
 * Serves a socket of `/ws`, `/ws2` or `/ws3`, and executes the actions of its text session. The first message
 * or the drain creates the session, so that an idle socket needs little memory.
 */
export class TextSocket implements OpenSocket {
  readonly #options: TextSocketOptions;
  #session: TextSession | undefined;
  #running: { readonly synthesis: Synthesis; readonly speech: SocketSynthesis } | undefined;
  #cancelSilence: (() => void) | undefined;
  /** The seconds of audio since the last `done`. */
  #streamSeconds = 0;
  #isClosed = false;

  constructor(options: TextSocketOptions) {
    this.#options = options;
  }

  get requestId(): string {
    return this.#options.caller.requestId;
  }

  /** Whether the socket has a session, which is false until the first message. */
  get hasSession(): boolean {
    return this.#session !== undefined;
  }

  countContexts(): number {
    return this.#isIdle || this.#isClosed ? 0 : 1;
  }

  drain(): void {
    this.#act(this.#openSession().drain());
    this.#watchSilence();
  }

  receive(data: RawData): void {
    if (this.#isClosed) return;
    const { dialect } = this.#options;
    const session = this.#openSession();
    const message = dialect.read(String(data));
    if (message.kind === "malformed") void this.#send(dialect.error(message.problem));
    else if (message.kind === "text") this.#act(session.text(message));
    else this.#act(session[message.operation]());
    this.#watchSilence();
  }

  /** Stops all work of the socket, also after the client has disconnected. */
  end(): void {
    this.#isClosed = true;
    this.#cancelSilence?.();
    this.#running?.speech.stop();
    this.#running = undefined;
  }

  get #isIdle(): boolean {
    return this.#session?.isIdle ?? true;
  }

  #openSession(): TextSession {
    const { settings, dialect, clearMode } = this.#options;
    this.#session ??= new TextSession({
      ...{ mode: settings.segment, language: settings.speech.invocation.lang, commas: dialect.cutsAtCommas },
      ...{ longestText: longestTextOf(settings), longestBacklog, clearMode },
    });
    return this.#session;
  }

  #watchSilence(): void {
    this.#cancelSilence?.();
    if (this.#isClosed || this.#isIdle) return;
    const end = () => this.#act(this.#openSession().silence());
    this.#cancelSilence = this.#options.parts.clock.after(silenceMs, end, { isBackground: true });
  }

  #act(actions: readonly SessionAction[]): void {
    const { dialect } = this.#options;
    for (const action of actions) {
      switch (action.kind) {
        case "speak":
          void this.#speak(action.synthesis);
          break;
        case "stop":
          this.#stop();
          break;
        case "done":
          this.#streamSeconds = 0;
          void this.#send(dialect.done(action.contextId));
          break;
        case "close":
          this.#close(...closings[action.reason]);
      }
    }
  }

  async #speak(synthesis: Synthesis): Promise<void> {
    const { parts, settings, caller, dialect } = this.#options;
    const { number, contextId } = synthesis;
    try {
      const speechRequest = speechRequestFor(settings, synthesis);
      const speech = new SocketSynthesis(parts, caller, { number, speechRequest });
      this.#running = { synthesis, speech };
      await speech.run((audio) => this.#send(dialect.chunk(audio, contextId)));
      if (speech.isStopped) return;
      this.#running = undefined;
      if (speech.audioSeconds > 0) this.#sendTimestamps(speech, synthesis);
      this.#streamSeconds += speech.audioSeconds;
      this.#act(this.#openSession().finished(number));
    } catch (error) {
      this.#fail(synthesis, toFailure(error));
    }
  }

  #sendTimestamps({ words }: SocketSynthesis, { contextId }: Synthesis): void {
    const { dialect, settings } = this.#options;
    const offset = settings.timestampBase === "stream" ? this.#streamSeconds : 0;
    const moved = offset === 0 ? words : words.map((word) => later(word, offset));
    void this.#send(dialect.timestamps(moved, contextId));
  }

  #fail(synthesis: Synthesis, failure: Failure): void {
    const hasSpoken = (this.#running?.speech.audioSeconds ?? 0) > 0;
    this.#running = undefined;
    const error = this.#options.dialect.error(failure.message, synthesis.contextId);
    if (failure instanceof RefusedCredential) this.#close(refused, failure.closeReason);
    else if (failure.status === 503 && !hasSpoken) this.#close(...overloaded);
    else if (error === undefined)
      this.#close(broken, failure.status < 500 ? "400: invalid request" : "500: internal error");
    else {
      void this.#send(error);
      this.#act(this.#openSession().failed(synthesis.number));
    }
  }

  /**
   * Stops the running synthesis. The client receives the timestamps of the words that it can have played completely.
   */
  #stop(): void {
    const running = this.#running;
    this.#running = undefined;
    if (!running) return;
    running.speech.stop();
    if (running.speech.words.length > 0) this.#sendTimestamps(running.speech, running.synthesis);
  }

  /** Sends a frame. The promise resolves when the client can receive more. */
  async #send(frame: string | Uint8Array | undefined): Promise<void> {
    const { socket, settings } = this.#options;
    if (frame !== undefined) await sendFrame(socket, frame, settings.speech.rate);
  }

  #close(code: number, reason: string): void {
    this.end();
    this.#options.socket.close(code, reason);
  }
}

function later({ word, start, end }: WordTimestamp, seconds: number): WordTimestamp {
  return { word, start: start + seconds, end: end + seconds };
}
