import type { Dispatcher } from "undici";
import { createAudioMeter } from "./audio-meter.ts";
import { audioOfEvents } from "./events.ts";
import type { Measure } from "./measure.ts";
import { PlaybackMeter } from "./playback.ts";
import { formOf, requestFor, type Target } from "./target.ts";

/** Result of one request. Times are milliseconds since it was sent. */
export interface StreamRecord {
  /** `unfinished` means that the stream was still running when the time was up. */
  readonly outcome: "complete" | "unfinished" | "failed";
  /** Reason of the failure: the problem's code, `http_STATUS`, or the connection's error. */
  readonly code?: string;
  /** Bytes of audio. */
  readonly bytes: number;
  readonly wallMs: number;
  /** Undefined if no audio arrived. */
  readonly firstAudioMs: number | undefined;
  /** Undefined if the format does not contain the duration. */
  readonly audioMs: number | undefined;
  readonly stallMs: number | undefined;
}

/** An error body is a small document, so at most this much of it is read. */
const maxProblemBytes = 64 * 1024;

/** Requests one text and reads the response to its end, or until the signal aborts. Never throws. */
export async function measureStream(
  agent: Dispatcher,
  target: Target,
  text: string,
  signal: AbortSignal,
): Promise<StreamRecord> {
  const listener = new Listener(performance.now());
  try {
    const answer = await agent.request({ ...requestFor(target, text), method: "POST", signal });
    if (answer.statusCode !== 200) return listener.failed(await codeOf(answer));
    const { mediaType, inEvents, rate } = formOf(target, answer.headers);
    const meter = createAudioMeter(mediaType, rate);
    const body = answer.body as AsyncIterable<Uint8Array>;
    for await (const piece of inEvents ? audioOfEvents(body) : body) listener.hear(meter.push(piece));
    return listener.complete();
  } catch (error) {
    return signal.aborted ? listener.unfinished() : listener.failed(connectionCode(error));
  }
}

class Listener {
  readonly #sentAt: number;
  readonly #playback = new PlaybackMeter();
  #bytes = 0;
  #audioMs: number | undefined = 0;
  #firstAudioMs: number | undefined;

  constructor(sentAt: number) {
    this.#sentAt = sentAt;
  }

  hear({ bytes, ms }: Measure): void {
    if (bytes === 0) return;
    const now = this.#elapsedMs();
    this.#firstAudioMs ??= now;
    this.#bytes += bytes;
    this.#audioMs = ms === undefined || this.#audioMs === undefined ? undefined : this.#audioMs + ms;
    this.#playback.arrive(now, ms ?? 0);
  }

  complete(): StreamRecord {
    return this.#bytes === 0 ? this.failed("no_audio") : this.#record("complete");
  }

  unfinished(): StreamRecord {
    this.#playback.waitUntil(this.#elapsedMs());
    return this.#record("unfinished");
  }

  failed(code: string): StreamRecord {
    return { ...this.#record("failed"), code };
  }

  #record(outcome: StreamRecord["outcome"]): StreamRecord {
    const heard = this.#firstAudioMs !== undefined && this.#audioMs !== undefined;
    return {
      outcome,
      bytes: this.#bytes,
      wallMs: this.#elapsedMs(),
      firstAudioMs: this.#firstAudioMs,
      audioMs: this.#audioMs,
      stallMs: heard ? this.#playback.stallMs : undefined,
    };
  }

  #elapsedMs(): number {
    return performance.now() - this.#sentAt;
  }
}

async function codeOf({ statusCode, body }: Dispatcher.ResponseData): Promise<string> {
  let text = "";
  for await (const piece of body) {
    text += String(piece);
    if (text.length > maxProblemBytes) break;
  }
  return problemCode(text) ?? `http_${statusCode}`;
}

/** The project's problems have `code`, and OpenAI's errors have `error.code`. */
function problemCode(text: string): string | undefined {
  try {
    const problem = JSON.parse(text) as { code?: unknown; error?: { code?: unknown } };
    return shortWord(problem?.code ?? problem?.error?.code);
  } catch {
    return undefined; // The body is not JSON, so the status is the only information.
  }
}

/** A failure without a code means that the audio was missing or incomplete. */
function connectionCode(error: unknown): string {
  return shortWord((error as { code?: unknown }).code) ?? "broken_stream";
}

/** A code is a short word. Other text of a foreign server is not shown. */
function shortWord(given: unknown): string | undefined {
  return typeof given === "string" && /^[\w.-]{1,60}$/.test(given) ? given : undefined;
}
