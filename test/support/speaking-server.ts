import type { ModelTierOptions } from "../../server/model/settings.ts";
import type { WordTime } from "../../server/speech.ts";
import type { TestApi } from "./api-tier.ts";
import { joinChunks, parseEvents } from "./events.ts";
import { startWholeServer } from "./whole-server.ts";

export interface Answer {
  readonly samples: Int16Array;
  /** Hz. */
  readonly rate: number;
}

export interface TimedAnswer extends Answer {
  readonly words: readonly WordTime[];
}

/** All three tiers with the catalogue's voices and the real engines: what a caller meets. */
export interface SpeakingServer {
  readonly api: TestApi;
  /** Raw PCM. @param body as a caller sends it. */
  speak(body: object): Promise<Answer>;
  /** The event stream, with its word times. */
  speakTimed(body: object): Promise<TimedAnswer>;
  stop(): Promise<void>;
}

/** @param options of both model tiers. */
export async function startSpeakingServer(options: Partial<ModelTierOptions> = {}): Promise<SpeakingServer> {
  const roomy = { maxConcurrentStreams: 64, queueDeadlineMs: 30_000 };
  const { api, stop } = await startWholeServer({}, { ...roomy, ...options });
  return {
    api,
    speak: (body) => speak(api, body),
    speakTimed: (body) => speakTimed(api, body),
    stop,
  };
}

async function speak(api: TestApi, body: object): Promise<Answer> {
  const answer = await whole(api.post(body, { accept: "audio/pcm" }));
  return { samples: samplesOf(Buffer.from(await answer.arrayBuffer())), rate: rateOf(answer) };
}

async function speakTimed(api: TestApi, body: object): Promise<TimedAnswer> {
  const answer = await whole(api.post({ ...body, audioFormat: "pcm" }, { accept: "text/event-stream" }));
  const events = parseEvents(await answer.text());
  const timestamps = events.find(({ name }) => name === "timestamps")?.data as Timestamps | undefined;
  if (!timestamps) throw new Error("an event stream without timestamps");
  const { words, start, end } = timestamps.word_timestamps;
  return {
    samples: samplesOf(joinChunks(events)),
    rate: rateOf(answer),
    words: words.map((word, i) => ({ word, start: start[i] ?? Number.NaN, end: end[i] ?? Number.NaN })),
  };
}

interface Timestamps {
  readonly word_timestamps: {
    readonly words: readonly string[];
    readonly start: readonly number[];
    readonly end: readonly number[];
  };
}

async function whole(answering: Promise<Response>): Promise<Response> {
  const answer = await answering;
  if (!answer.ok) throw new Error(`status ${answer.status}: ${await answer.text()}`);
  return answer;
}

function rateOf(answer: Response): number {
  return Number(answer.headers.get("x-sampling-rate"));
}

function samplesOf(bytes: Buffer): Int16Array {
  const copy = new Uint8Array(bytes);
  return new Int16Array(copy.buffer, 0, copy.length >> 1);
}
