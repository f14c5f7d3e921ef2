import { type ModelId, models, type Profile } from "../../../config/contract/models.ts";
import { opusRates } from "../../audio/opus.ts";
import { Failure } from "../../contract/errors.ts";
import { type MediaRange, matchTypes, parseAccept } from "./accept.ts";

/** The values of `audioFormat` in the specification (parts 2.1 and 4). */
export const audioFormats = ["wav", "ogg", "mp3", "mulaw", "pcm"] as const;
export type HttpFormat = (typeof audioFormats)[number];
/** The formats of all protocols. Only WebSockets support WebM. */
export type AudioFormat = HttpFormat | "webm";
/** The formats of an event stream (specification 4.1). The first format is the default. */
export const eventFormats = ["mp3", "mulaw", "pcm"] as const satisfies readonly AudioFormat[];

/**
 * The media types with which `Accept` requests a stream of a format. The response has the first type. The
 * other types are aliases.
 */
export const streamTypes: Readonly<Record<HttpFormat, readonly [mediaType: string, ...aliases: string[]]>> = {
  wav: ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"],
  ogg: ["audio/ogg"],
  mp3: ["audio/mpeg", "audio/mp3"],
  mulaw: ["audio/x-mulaw"],
  pcm: ["audio/pcm"],
};

export type Variant =
  /**
   * The response is `{"audioContent": base64}`. If `formatRequired` is false, the default of `audioFormat` is
   * `wav`.
   */
  | { readonly form: "json"; readonly formatRequired: boolean }
  /**
   * The response consists of server-sent events (specification 4.1). The default of `audioFormat` is `mp3`.
   */
  | { readonly form: "events" }
  | StreamVariant;

export interface StreamVariant {
  readonly form: "stream";
  readonly mediaType: string;
  readonly format: AudioFormat;
  readonly defaultModel: ModelId;
  readonly defaultRate: (model: ModelId) => number;
  /** The sampling rate in Hz, if the media type determines the rate. */
  readonly fixedRate?: number;
}

/** The name of the variant in logs and metrics. */
export type AnswerForm = Variant["form"] | "socket";

interface Offer {
  /** The media type of the response, followed by its aliases. */
  readonly types: readonly string[];
  readonly variant: (specificity: number) => Variant;
}

const defaultRate = (model: ModelId) => models[model].defaultRate;

function stream(types: readonly string[], variant: Partial<StreamVariant> & { format: AudioFormat }): Offer {
  const mediaType = types[0] as string;
  const whole = { form: "stream", mediaType, defaultModel: "mist", defaultRate, ...variant } as const;
  return { types, variant: () => whole };
}

/**
 * The variants in the server's order of preference. The order decides if `Accept` prefers several variants
 * equally.
 */
const offers: readonly Offer[] = [
  {
    types: ["application/json"],
    variant: (specificity) => ({ form: "json", formatRequired: specificity === 3 }),
  },
  stream(streamTypes.wav, { format: "wav", defaultModel: "arcana" }),
  stream(streamTypes.pcm, { format: "pcm", defaultRate: (model) => models[model].defaultPcmRate }),
  stream(streamTypes.mp3, { format: "mp3" }),
  stream(streamTypes.ogg, { format: "ogg" }),
  stream(streamTypes.mulaw, { format: "mulaw" }),
  stream(["audio/basic", "audio/pcmu"], { format: "mulaw", fixedRate: 8000 }),
  { types: ["text/event-stream"], variant: () => ({ form: "events" }) },
];

const jsonFallback: Variant = { form: "json", formatRequired: false };

/** All media types of responses. */
export const offeredTypes: readonly string[] = offers.map((offer) => offer.types[0] as string);

/**
 * Selects the variant of the response.
 * A header that allows another type than audio, such as `text/html`, selects JSON.
 * @throws Failure `not_acceptable` if `Accept` allows none of the offered types.
 */
export function chooseVariant(accept: string | undefined): Variant {
  const ranges = parseAccept(accept ?? "");
  if (ranges.length === 0) return jsonFallback;
  const [best] = offers
    .map((offer) => ({ offer, match: matchTypes(ranges, offer.types) }))
    .filter((candidate) => candidate.match !== undefined && candidate.match.quality > 0)
    .map(({ offer, match }) => ({ offer, match: match as NonNullable<typeof match> }))
    .sort(
      (a, b) =>
        b.match.quality - a.match.quality ||
        b.match.specificity - a.match.specificity ||
        a.match.position - b.match.position,
    );
  if (best) return best.offer.variant(best.match.specificity);
  if (ranges.some(meansAnything) && !refusesJson(ranges)) return jsonFallback;
  throw new Failure("not_acceptable", `Accept one of ${offeredTypes.join(", ")}.`);
}

/** Returns whether the client accepts a type other than audio, such as `text/html` of a browser. */
function meansAnything({ type, quality }: MediaRange): boolean {
  return quality > 0 && !type.startsWith("audio/");
}

function refusesJson(ranges: readonly MediaRange[]): boolean {
  return matchTypes(ranges, ["application/json"])?.quality === 0;
}

/** The allowed values of `samplingRate` in Hz (specification parts 2.1 and 8). */
export type RateRule =
  | { readonly kind: "range"; readonly from: number; readonly to: number }
  | { readonly kind: "list"; readonly rates: readonly number[] };

const cloudRates = [8000, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000];

/**
 * Returns the allowed sampling rates.
 * @param highestRate the limit in Hz of a self-hosted arcana, for which the specification allows "any value".
 */
export function rateRule(
  model: ModelId,
  format: AudioFormat,
  profile: Profile,
  highestRate: number,
): RateRule {
  if (isOpus(format)) return { kind: "list", rates: opusRates };
  if (model !== "arcana") return { kind: "range", from: 4000, to: 44_100 };
  if (profile === "cloud") return { kind: "list", rates: cloudRates };
  return { kind: "range", from: 1, to: highestRate };
}

export function isOpus(format: AudioFormat): boolean {
  return format === "ogg" || format === "webm";
}
