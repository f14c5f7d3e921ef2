/** What is asked, and in which shape. */
export interface Target {
  /** A base (`http://127.0.0.1:8000`), or the whole address where the path is another than the shape's own. */
  readonly url: string;
  readonly shape: "svc-tts" | "openai";
  readonly key: string | undefined;
  readonly model: string;
  readonly voice: string;
  /** A media type. */
  readonly accept: string;
  /** Hz: asked for, and with the OpenAI shape, which cannot ask, believed of raw audio. */
  readonly rate: number | undefined;
  /** Spoken in turn. */
  readonly texts: readonly string[];
}

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
export const openaiTypes = Object.keys(openaiFormats);

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

function ownBody({ model, voice, rate }: Target, text: string): object {
  return { modelId: model, speaker: voice, text, ...(rate !== undefined && { samplingRate: rate }) };
}

function openaiBody({ model, voice, accept }: Target, text: string): object {
  return { model, voice, input: text, response_format: openaiFormats[accept] };
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** What an answer says of its own form; what it leaves out is taken as it was asked for. */
export function formOf(target: Target, headers: Headers): { mediaType: string; rate: number | undefined } {
  const contentType = String(headers["content-type"] ?? target.accept);
  const [mediaType = ""] = contentType.toLowerCase().split(";", 1);
  const written = headers["x-sampling-rate"] ?? /;\s*rate=(\d+)/i.exec(contentType)?.[1];
  const told = Number(written);
  const assumed = target.rate ?? (target.shape === "openai" ? openaiPcmRate : undefined);
  return { mediaType: mediaType.trim(), rate: Number.isInteger(told) && told > 0 ? told : assumed };
}
