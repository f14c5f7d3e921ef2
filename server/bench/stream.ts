import type { Dispatcher } from "undici";
import { createAudioMeter } from "./audio-meter.ts";
import { audioOfEvents } from "./events.ts";
import type { Measure } from "./measure.ts";
import { PlaybackMeter } from "./playback.ts";
import { formOf, requestFor, type Target } from "./target.ts";

/** The result of one request. Times are in milliseconds since the request was sent. */
export interface StreamRecord {
  /** An `unfinished` stream was still running at the end of the run. */
  readonly outcome: "complete" | "unfinished" | "failed";
  /** The reason of the failure: the code of the problem, `http_STATUS`, or the error of the connection. */
  readonly code?: string;
  /** The number of bytes of audio. */
  readonly bytes: number;
  readonly wallMs: number;
  /** The time to first audio. The value is undefined if no audio arrived. */
  readonly firstAudioMs: number | undefined;
  /** The duration of the audio. The value is undefined if the format does not contain the duration. */
  readonly audioMs: number | undefined;
  readonly stallMs: number | undefined;
}

/** The highest number of bytes that are read of an error response, which is a small document. */
const maxProblemBytes = 64 * 1024;

/**
 * Requests one text, and reads the response until its end or an abort of the signal. The function never
 * throws.
 */
export async function measureStream(
  agent: Dispatcher,
  target: Target,
  text: string,
  signal: AbortSignal,
): Promise<StreamRecord> {
  const stream = new StreamMeter(performance.now());
  try {
    const response = await agent.request({ ...requestFor(target, text), method: "POST", signal });
    if (response.statusCode !== 200) return stream.failed(await codeOf(response));
    const { mediaType, inEvents, rate } = formOf(target, response.headers);
    const meter = createAudioMeter(mediaType, rate);
    const body = response.body as AsyncIterable<Uint8Array>;
    for await (const piece of inEvents ? audioOfEvents(body) : body) stream.add(meter.push(piece));
    return stream.complete();
  } catch (error) {
    return signal.aborted ? stream.unfinished() : stream.failed(connectionCode(error));
  }
}

class StreamMeter {
  readonly #sentAt: number;
  readonly #playback = new PlaybackMeter();
  #bytes = 0;
  #audioMs: number | undefined = 0;
  #firstAudioMs: number | undefined;

  constructor(sentAt: number) {
    this.#sentAt = sentAt;
  }

  add({ bytes, ms }: Measure): void {
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
    const isMeasured = this.#firstAudioMs !== undefined && this.#audioMs !== undefined;
    return {
      outcome,
      bytes: this.#bytes,
      wallMs: this.#elapsedMs(),
      firstAudioMs: this.#firstAudioMs,
      audioMs: this.#audioMs,
      stallMs: isMeasured ? this.#playback.stallMs : undefined,
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

/**
 * Returns the code of an error response. This project's problems have `code`, and OpenAI's errors have
 * `error.code`.
 */
function problemCode(text: string): string | undefined {
  try {
    const problem = JSON.parse(text) as { code?: unknown; error?: { code?: unknown } };
    return shortWord(problem?.code ?? problem?.error?.code);
  } catch {
    return undefined; // The body is not JSON, so only the status is known.
  }
}

/**
 * Returns the code of a connection's error. A failure without a code means that the audio was missing or
 * incomplete.
 */
function connectionCode(error: unknown): string {
  return shortWord((error as { code?: unknown }).code) ?? "broken_stream";
}

/** Returns a value if the value is a short word. The report shows no other text of a server. */
function shortWord(value: unknown): string | undefined {
  return typeof value === "string" && /^[\w.-]{1,60}$/.test(value) ? value : undefined;
}
