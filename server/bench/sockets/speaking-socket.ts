import { type RawData, WebSocket } from "ws";
import { sleep, systemClock } from "../../../lib/clock.ts";
import { requestFor, type Target } from "../target.ts";
import { ContextMeter, type ContextRecord } from "./context-meter.ts";
import type { WrittenText } from "./written-text.ts";

/** A server that is measured over WebSockets. Each socket requests raw PCM with the sampling rate `rate`. */
export interface SocketTarget extends Target {
  readonly rate: number;
}

export interface ContextPlan {
  readonly text: WrittenText;
  /** Whether the client sends `clear` when the first audio arrives. */
  readonly isCancelled: boolean;
  /** The tokens per second. If the value is undefined, the client sends all tokens at once. */
  readonly pace: number | undefined;
}

/** The longest wait for a message of the server. */
const silenceLimitMs = 60_000;
const handshakeLimitMs = 60_000;

/** An upgrade that the server rejected, or a connection that failed. */
export class SocketFailure extends Error {
  /** The code is `http_STATUS`, or the error code of the connection. */
  readonly code: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, retryAfterSeconds?: number) {
    super(`the WebSocket could not be opened: ${code}`);
    this.name = "SocketFailure";
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Returns the URL of `/ws3` below the route of HTTP requests. */
export function socketUrl(target: SocketTarget): string {
  const { origin, path } = requestFor(target, "");
  const url = new URL(path, origin.replace(/^http/, "ws"));
  url.pathname = `${url.pathname.replace(/\/$/, "")}/ws3`;
  const { model, voice, rate } = target;
  for (const [name, value] of Object.entries({ modelId: model, speaker: voice, samplingRate: rate }))
    url.searchParams.set(name, String(value));
  url.searchParams.set("audioFormat", "pcm");
  return url.href;
}

/** An open socket of `/ws3`, which runs one context at a time. */
export class SpeakingSocket {
  readonly #socket: WebSocket;
  readonly #rate: number;
  #contexts = 0;

  /** Opens a socket. @throws SocketFailure if the server rejects the upgrade, or the connection fails. */
  static async open(target: SocketTarget): Promise<SpeakingSocket> {
    return new SpeakingSocket(await connect(target), target.rate);
  }

  private constructor(socket: WebSocket, rate: number) {
    this.#socket = socket;
    this.#rate = rate;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN;
  }

  terminate(): void {
    this.#socket.terminate();
  }

  /**
   * Sends one text and receives its audio, until the audio ends or the signal aborts. The record contains
   * failures, so this method never throws.
   */
  async speak(plan: ContextPlan, signal: AbortSignal): Promise<ContextRecord> {
    const run = {
      plan,
      contextId: `bench-${this.#contexts++}`,
      meter: new ContextMeter(this.#rate),
      signal,
      written: new AbortController(),
    };
    const receiving = this.#receive(run);
    await this.#write(run);
    return receiving;
  }

  /** Sends the tokens until the context ends or is cancelled. */
  async #write({ plan: { text, pace }, meter, contextId, signal, written }: ContextRun): Promise<void> {
    const stop = AbortSignal.any([signal, written.signal]);
    const startedAt = performance.now();
    for (const [at, token] of text.tokens.entries()) {
      const waitMs = pace === undefined ? 0 : startedAt + (at * 1000) / pace - performance.now();
      if (waitMs > 0) await sleep(systemClock, waitMs, stop);
      if (stop.aborted) return;
      if (at === text.firstSentenceTokens - 1) meter.sentenceSent(performance.now());
      this.#send({ text: token, contextId });
    }
    this.#send({ operation: "flush", contextId });
  }

  #receive({ plan, meter, contextId, signal, written }: ContextRun): Promise<ContextRecord> {
    const { promise, resolve } = Promise.withResolvers<ContextRecord>();
    const socket = this.#socket;
    const late = setTimeout(() => finish(meter.failed(performance.now(), "timeout")), silenceLimitMs);
    const finish = (record: ContextRecord) => {
      clearTimeout(late);
      written.abort();
      socket.off("message", onMessage).off("close", onClose);
      signal.removeEventListener("abort", onAbort);
      resolve(record);
    };
    const onMessage = (data: RawData) => {
      const record = read(meter, String(data), contextId, performance.now());
      late.refresh();
      if (record) finish(record);
      else if (plan.isCancelled && meter.hasAudio && !meter.isCleared) {
        written.abort();
        meter.cleared(performance.now());
        this.#send({ operation: "clear" });
      }
    };
    const onClose = (code: number) => finish(meter.failed(performance.now(), `close_${code}`));
    const onAbort = () => finish(meter.unfinished(performance.now()));
    socket.on("message", onMessage).on("close", onClose);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    return promise;
  }

  #send(message: object): void {
    if (this.isOpen) this.#socket.send(JSON.stringify(message));
  }
}

interface ContextRun {
  readonly plan: ContextPlan;
  readonly contextId: string;
  readonly meter: ContextMeter;
  /** The signal aborts at the end of the run. */
  readonly signal: AbortSignal;
  /** The controller aborts when the client must stop sending text. */
  readonly written: AbortController;
}

interface ServerEvent {
  readonly type?: string;
  readonly data?: string;
  readonly contextId?: string | null;
}

/** Processes an event of the server. @returns the record if the event ends the context. */
function read(
  meter: ContextMeter,
  frame: string,
  contextId: string,
  atMs: number,
): ContextRecord | undefined {
  const event = parse(frame);
  const isForeign = typeof event?.contextId === "string" && event.contextId !== contextId;
  if (!event || isForeign) return meter.failed(atMs, "unexpected_message");
  switch (event.type) {
    case "chunk":
      meter.chunk(atMs, Buffer.from(event.data ?? "", "base64"));
      return undefined;
    case "timestamps":
      meter.synthesisOver();
      return undefined;
    case "done":
      return meter.done(atMs);
    default:
      return meter.failed(atMs, event.type === "error" ? "error_event" : "unexpected_message");
  }
}

function parse(frame: string): ServerEvent | undefined {
  try {
    return JSON.parse(frame) as ServerEvent;
  } catch {
    return undefined; // The message is not JSON.
  }
}

function connect(target: SocketTarget): Promise<WebSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  const socket = new WebSocket(socketUrl(target), {
    headers: target.key === undefined ? {} : { authorization: `Bearer ${target.key}` },
    perMessageDeflate: false,
    handshakeTimeout: handshakeLimitMs,
  });
  socket.once("open", () => resolve(socket));
  socket.once("unexpected-response", (request, { statusCode, headers }) => {
    const seconds = Number(headers["retry-after"] ?? Number.NaN);
    reject(new SocketFailure(`http_${statusCode}`, Number.isFinite(seconds) ? seconds : undefined));
    request.destroy();
  });
  socket.on("error", (error: NodeJS.ErrnoException) =>
    reject(new SocketFailure(/^\w{1,60}$/.exec(error.code ?? "")?.[0] ?? "broken_socket")),
  );
  return promise;
}
