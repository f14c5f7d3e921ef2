/** The server to measure, and the form of its requests. */
export interface Target {
  /** A base URL (`http://127.0.0.1:8000`), or a complete URL with another path. */
  readonly url: string;
  readonly shape: "svc-tts" | "openai";
  readonly key: string | undefined;
  readonly model: string;
  readonly voice: string;
  /** The requested media type: audio, or `text/event-stream`. */
  readonly accept: string;
  /** The format of the audio in events. */
  readonly eventFormat: EventFormat;
  /**
   * The sampling rate in Hz that the request contains. Requests of the OpenAI shape cannot contain a rate, so
   * the tool assumes that their raw audio has this rate.
   */
  readonly rate: number | undefined;
  /** The texts to request, one after the other. */
  readonly texts: readonly string[];
}

/** The media type of each `audioFormat` of events. */
export const eventFormatTypes = { mp3: "audio/mpeg", mulaw: "audio/x-mulaw", pcm: "audio/pcm" } as const;
export type EventFormat = keyof typeof eventFormatTypes;
export const eventStream = "text/event-stream";

export interface HttpRequest {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const paths = { "svc-tts": "/v1/svc-tts", openai: "/v1/audio/speech" } as const;

/** The `response_format` of the OpenAI shape for each media type. */
const openaiFormats: Readonly<Record<string, string>> = {
  "audio/pcm": "pcm",
  "audio/wav": "wav",
  "audio/mpeg": "mp3",
  "audio/ogg": "opus",
};
/** The sampling rate of raw PCM of the OpenAI shape, in Hz. */
const openaiPcmRate = 24_000;

/** The media types that the OpenAI shape can request. */
export const openaiTypes = [...Object.keys(openaiFormats), eventStream];

export function requestFor(target: Target, text: string): HttpRequest {
  const { origin, pathname, search } = new URL(target.url);
  return {
    origin,
    path: `${pathname === "/" ? paths[target.shape] : pathname}${search}`,
    headers: {
      "content-type": "application/json",
      accept: target.accept,
      ...(target.key !== undefined && { authorization: `Bearer ${target.key}` }),
    },
    body: JSON.stringify(target.shape === "openai" ? openaiBody(target, text) : ownBody(target, text)),
  };
}

function ownBody({ model, voice, rate, accept, eventFormat }: Target, text: string): object {
  return {
    modelId: model,
    speaker: voice,
    text,
    ...(rate !== undefined && { samplingRate: rate }),
    ...(accept === eventStream && { audioFormat: eventFormat }),
  };
}

function openaiBody({ model, voice, accept, eventFormat }: Target, text: string): object {
  if (accept !== eventStream) return { model, voice, input: text, response_format: openaiFormats[accept] };
  return { model, voice, input: text, response_format: eventFormat, stream_format: "sse" };
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface ResponseForm {
  /** The media type of the audio, which may be contained in events. */
  readonly mediaType: string;
  readonly inEvents: boolean;
  /** The sampling rate in Hz. */
  readonly rate: number | undefined;
}

/** Reads the form of a response from its headers. A missing header means that the requested form applies. */
export function formOf(target: Target, headers: Headers): ResponseForm {
  const contentType = String(headers["content-type"] ?? target.accept);
  const [mediaType = ""] = contentType.toLowerCase().split(";", 1);
  const written = headers["x-sampling-rate"] ?? /;\s*rate=(\d+)/i.exec(contentType)?.[1];
  const statedRate = Number(written);
  const assumedRate = target.rate ?? (target.shape === "openai" ? openaiPcmRate : undefined);
  const inEvents = mediaType.trim() === eventStream;
  return {
    mediaType: inEvents ? eventFormatTypes[target.eventFormat] : mediaType.trim(),
    inEvents,
    rate: Number.isInteger(statedRate) && statedRate > 0 ? statedRate : assumedRate,
  };
}
