/** What is asked, and in which shape. */
export interface Target {
  /** A base (`http://127.0.0.1:8000`), or the whole address where the path is another than the shape's own. */
  readonly url: string;
  readonly shape: "svc-tts" | "openai";
  readonly key: string | undefined;
  readonly model: string;
  readonly voice: string;
  /** A media type: of audio, or `text/event-stream`. */
  readonly accept: string;
  /** What events carry. */
  readonly eventFormat: EventFormat;
  /** Hz: asked for, and with the OpenAI shape, which cannot ask, believed of raw audio. */
  readonly rate: number | undefined;
  /** Spoken in turn. */
  readonly texts: readonly string[];
}

/** `audioFormat` of events, and the media type that the same audio has by itself. */
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

/** `response_format` of the OpenAI shape by media type. */
const openaiFormats: Readonly<Record<string, string>> = {
  "audio/pcm": "pcm",
  "audio/wav": "wav",
  "audio/mpeg": "mp3",
  "audio/ogg": "opus",
};
/** Hz of the OpenAI shape's raw PCM. */
const openaiPcmRate = 24_000;

/** Media types that the OpenAI shape can ask for. */
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
  /** Of the audio, also where events carry it. */
  readonly mediaType: string;
  readonly inEvents: boolean;
  /** Hz. */
  readonly rate: number | undefined;
}

/** What an answer says of its own form; what it leaves out is taken as it was asked for. */
export function formOf(target: Target, headers: Headers): ResponseForm {
  const contentType = String(headers["content-type"] ?? target.accept);
  const [mediaType = ""] = contentType.toLowerCase().split(";", 1);
  const written = headers["x-sampling-rate"] ?? /;\s*rate=(\d+)/i.exec(contentType)?.[1];
  const told = Number(written);
  const assumed = target.rate ?? (target.shape === "openai" ? openaiPcmRate : undefined);
  const inEvents = mediaType.trim() === eventStream;
  return {
    mediaType: inEvents ? eventFormatTypes[target.eventFormat] : mediaType.trim(),
    inEvents,
    rate: Number.isInteger(told) && told > 0 ? told : assumed,
  };
}
