import { type ModelId, models, type Profile } from "../../../config/contract/models.ts";
import { opusRates } from "../../audio/opus.ts";
import { Failure } from "../../contract/errors.ts";
import { type MediaRange, matchTypes, parseAccept } from "./accept.ts";

/** What the specification lets a caller name in `audioFormat` (parts 2.1 and 4). */
export const audioFormats = ["wav", "ogg", "mp3", "mulaw", "pcm"] as const;
export type AudioFormat = (typeof audioFormats)[number];
/** Those that an event stream carries (specification 4.1), the default first. */
export const eventFormats = ["mp3", "mulaw", "pcm"] as const satisfies readonly AudioFormat[];

export type Variant =
  /** `{"audioContent": base64}`; without `formatRequired`, `audioFormat` is `wav` unless given. */
  | { readonly form: "json"; readonly formatRequired: boolean }
  /** Server-sent events (specification 4.1); `audioFormat` is `mp3` unless given. */
  | { readonly form: "events" }
  | StreamVariant;

export interface StreamVariant {
  readonly form: "stream";
  readonly mediaType: string;
  readonly format: AudioFormat;
  readonly defaultModel: ModelId;
  readonly defaultRate: (model: ModelId) => number;
  /** Hz, where the media type itself fixes the rate. */
  readonly fixedRate?: number;
}

/** The form in which speech goes out, as logs and metrics name it. */
export type AnswerForm = Variant["form"] | "socket";

interface Offer {
  /** The type answered with comes first, its aliases after it. */
  readonly types: readonly string[];
  readonly variant: (specificity: number) => Variant;
}

const defaultRate = (model: ModelId) => models[model].defaultRate;

function stream(types: readonly string[], variant: Partial<StreamVariant> & { format: AudioFormat }): Offer {
  const mediaType = types[0] as string;
  const whole = { form: "stream", mediaType, defaultModel: "mist", defaultRate, ...variant } as const;
  return { types, variant: () => whole };
}

/** In the server's order of preference, which decides where `Accept` leaves it open. */
const offers: readonly Offer[] = [
  {
    types: ["application/json"],
    variant: (specificity) => ({ form: "json", formatRequired: specificity === 3 }),
  },
  stream(["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"], {
    format: "wav",
    defaultModel: "arcana",
  }),
  stream(["audio/pcm"], { format: "pcm", defaultRate: (model) => models[model].defaultPcmRate }),
  stream(["audio/mpeg", "audio/mp3"], { format: "mp3" }),
  stream(["audio/ogg"], { format: "ogg" }),
  stream(["audio/x-mulaw"], { format: "mulaw" }),
  stream(["audio/basic", "audio/pcmu"], { format: "mulaw", fixedRate: 8000 }),
  { types: ["text/event-stream"], variant: () => ({ form: "events" }) },
];

const jsonFallback: Variant = { form: "json", formatRequired: false };

/** Every media type that an answer may have. */
export const offeredTypes: readonly string[] = offers.map((offer) => offer.types[0] as string);

/**
 * Names the form of the answer.
 * @throws Failure `not_acceptable` when `Accept` leaves nothing that is offered.
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

/** A type that is not audio and that we do not know, as a browser's `text/html`. */
function meansAnything({ type, quality }: MediaRange): boolean {
  return quality > 0 && !type.startsWith("audio/");
}

function refusesJson(ranges: readonly MediaRange[]): boolean {
  return matchTypes(ranges, ["application/json"])?.quality === 0;
}

/** What `samplingRate` may be, in Hz (specification parts 2.1 and 8). */
export type RateRule =
  | { readonly kind: "range"; readonly from: number; readonly to: number }
  | { readonly kind: "list"; readonly rates: readonly number[] };

const cloudRates = [8000, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000];

/** @param highestRate Hz, for a self-hosted arcana, of which the specification says "any value". */
export function rateRule(
  model: ModelId,
  format: AudioFormat,
  profile: Profile,
  highestRate: number,
): RateRule {
  if (format === "ogg") return { kind: "list", rates: opusRates };
  if (model !== "arcana") return { kind: "range", from: 4000, to: 44_100 };
  if (profile === "cloud") return { kind: "list", rates: cloudRates };
  return { kind: "range", from: 1, to: highestRate };
}
