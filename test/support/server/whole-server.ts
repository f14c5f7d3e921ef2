import type { Profile } from "../../../config/contract/models.ts";
import { voices } from "../../../config/contract/voices.ts";
import type { WordTimestamp } from "../../../server/contract/speech.ts";
import type { ModelTierOptions } from "../../../server/model/settings.ts";
import type { RunningTier } from "../../../server/model/tier.ts";
import type { ApiSettings } from "../../../server/start/api-settings.ts";
import { routeTo, startTestApi, type TestApi } from "./api-tier.ts";
import { joinChunks, parseEvents } from "./events.ts";
import { internalToken, modelTier } from "./model-tier.ts";

/**
 * The API tier and both model tiers on real sockets, with the real engines and every voice of the catalogue.
 */
export interface WholeServer {
  readonly api: TestApi;
  readonly mist: RunningTier;
  readonly arcana: RunningTier;
  profile(profile: Profile): void;
  stop(): Promise<void>;
}

/**
 * @param settings the settings of the API tier
 * @param options the options of both model tiers
 */
export async function startWholeServer(
  settings: Partial<ApiSettings> = {},
  options: Partial<ModelTierOptions> = {},
): Promise<WholeServer> {
  const tokens = { kind: "fixed", tokens: [internalToken, "internal-token"] } as const;
  const [mist, arcana] = await Promise.all([
    modelTier({ ...options, tier: "mist", tokens }),
    modelTier({ ...options, tier: "arcana", tokens }),
  ]);
  const routes = { mist: routeTo(mist.url), mistv2: routeTo(mist.url), arcana: routeTo(arcana.url) };
  const api = await startTestApi(routes, { voices, ...settings });
  return {
    api,
    mist,
    arcana,
    profile: (profile) => api.route(routes, { profile }),
    stop: async () => {
      await api.stop();
      await Promise.all([mist.stop(), arcana.stop()]);
    },
  };
}

export interface Answer {
  readonly samples: Int16Array;
  /** The sampling rate in Hz. */
  readonly rate: number;
}

export interface TimedAnswer extends Answer {
  readonly words: readonly WordTimestamp[];
}

/** A `WholeServer` with methods that request speech and decode it. */
export interface SpeakingServer {
  readonly api: TestApi;
  /** Requests speech as PCM. */
  speak(body: object): Promise<Answer>;
  /** Requests speech as server-sent events with word timestamps. */
  speakTimed(body: object): Promise<TimedAnswer>;
  stop(): Promise<void>;
}

/** @param options the options of both model tiers */
export async function startSpeakingServer(options: Partial<ModelTierOptions> = {}): Promise<SpeakingServer> {
  const highLimits = { maxConcurrentStreams: 64, queueDeadlineMs: 30_000 };
  const { api, stop } = await startWholeServer({}, { ...highLimits, ...options });
  return {
    api,
    speak: (body) => speak(api, body),
    speakTimed: (body) => speakTimed(api, body),
    stop,
  };
}

async function speak(api: TestApi, body: object): Promise<Answer> {
  const response = await whole(api.post(body, { accept: "audio/pcm" }));
  return { samples: samplesOf(Buffer.from(await response.arrayBuffer())), rate: rateOf(response) };
}

async function speakTimed(api: TestApi, body: object): Promise<TimedAnswer> {
  const response = await whole(api.post({ ...body, audioFormat: "pcm" }, { accept: "text/event-stream" }));
  const events = parseEvents(await response.text());
  const timestamps = events.find(({ name }) => name === "timestamps")?.data as Timestamps | undefined;
  if (!timestamps) throw new Error("the event stream has no timestamps event");
  const { words, start, end } = timestamps.word_timestamps;
  return {
    samples: samplesOf(joinChunks(events)),
    rate: rateOf(response),
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

async function whole(pending: Promise<Response>): Promise<Response> {
  const response = await pending;
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  return response;
}

function rateOf(response: Response): number {
  return Number(response.headers.get("x-sampling-rate"));
}

function samplesOf(bytes: Buffer): Int16Array {
  const copy = new Uint8Array(bytes);
  return new Int16Array(copy.buffer, 0, copy.length >> 1);
}

/** Requests the audio of a phone call (G.711 mu-law at 8000 Hz), and decodes it. */
export async function overTelephone(api: TestApi, body: object): Promise<Answer> {
  const response = await whole(api.post({ modelId: "mist", ...body }, { accept: "audio/basic" }));
  return { samples: fromMulaw(Buffer.from(await response.arrayBuffer())), rate: 8000 };
}

/**
 * Decodes G.711, table 2a. A byte has the sign, three bits of segment and four bits of step, all inverted.
 */
function fromMulaw(bytes: Uint8Array): Int16Array {
  return Int16Array.from(bytes, (byte) => {
    const bits = ~byte & 0xff;
    const magnitude = ((((bits & 0x0f) << 3) + 0x84) << ((bits >> 4) & 0x07)) - 0x84;
    return bits & 0x80 ? -magnitude : magnitude;
  });
}
