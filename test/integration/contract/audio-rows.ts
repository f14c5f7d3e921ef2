import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import type { RuleId } from "./rules.ts";

export type Form = "json" | "events" | "stream";
export type Codec = "wav" | "pcm" | "mulaw" | "mp3" | "ogg";

/** A request for audio, with the expected response. */
export interface AudioRow {
  readonly rules: readonly RuleId[];
  /** The header `Accept`. If undefined, the request has no such header. */
  readonly accept: string | undefined;
  readonly modelId: ModelId;
  /** The fields of the request besides speaker, text and `modelId`. */
  readonly body: object;
  readonly form: Form;
  readonly codec: Codec;
  readonly mediaType: string;
  /** The sampling rate in Hz that `X-Sampling-Rate` returns. */
  readonly rate: number;
}

interface Variant {
  readonly name: string;
  readonly accept: string | undefined;
  readonly body: object;
  readonly form: Form;
  readonly codec: Codec;
  readonly mediaType: string;
  readonly rules: readonly RuleId[];
  /** The default sampling rates in Hz of mist (with mistv2) and of arcana, or the rate of all models. */
  readonly rate: number | readonly [mist: number, arcana: number];
}

const events = { accept: "text/event-stream", form: "events", mediaType: "text/event-stream" } as const;
const json = { accept: "application/json", form: "json", mediaType: "application/json" } as const;
const streamOf = <Type extends string>(mediaType: Type) =>
  ({ accept: mediaType, form: "stream", mediaType }) as const;
const usual = [22_050, 24_000] as const;
const of = (audioFormat: Codec) => ({ audioFormat });

function variant(
  name: string,
  way: Pick<Variant, "accept" | "form" | "mediaType">,
  codec: Codec,
  rules: readonly RuleId[],
  body: object = {},
  rate: Variant["rate"] = usual,
): Variant {
  return { ...way, name, codec, rules, body, rate };
}

/**
 * Every form and format of a response. The test requests each variant from each model, at the default or a
 * required rate.
 */
export const variants: readonly Variant[] = [
  variant("events, mp3", events, "mp3", [
    "4.1 Accept",
    "events default",
    "4.1 samplingRate",
    "4.1 Response",
    "2.2 chunk",
  ]),
  variant("events, mp3 by name", events, "mp3", ["4.1 audioFormat", "2.1 mist audioFormat"], of("mp3")),
  variant("events, mulaw", events, "mulaw", ["4.1 audioFormat"], of("mulaw")),
  variant("events, pcm", events, "pcm", ["4.1 audioFormat", "2.1 mist samplingRate"], of("pcm")),
  variant(
    "JSON, wav",
    json,
    "wav",
    ["4.2 Accept", "4.2 audioFormat", "4.2 Response", "JSON shape"],
    of("wav"),
  ),
  variant(
    "JSON, ogg",
    json,
    "ogg",
    ["4.3 Accept", "4.3 audioFormat", "4.3 Response"],
    { ...of("ogg"), samplingRate: 16_000 },
    16_000,
  ),
  variant("JSON, mp3", json, "mp3", ["JSON shape"], of("mp3")),
  variant("JSON, mulaw", json, "mulaw", ["JSON shape"], of("mulaw")),
  variant("JSON, pcm", json, "pcm", ["JSON shape"], of("pcm")),
  variant("no Accept", { ...json, accept: undefined }, "wav", ["no Accept", "1.1"]),
  variant(
    "raw PCM",
    streamOf("audio/pcm"),
    "pcm",
    ["4.4 Accept", "4.4 Response", "raw PCM", "default rates"],
    {},
    [16_000, 24_000],
  ),
  variant("streamed WAV", streamOf("audio/wav"), "wav", [
    "4.5 Accept",
    "4.5 Response",
    "2.1 arcana samplingRate",
  ]),
  variant("MP3", streamOf("audio/mpeg"), "mp3", ["audio/mpeg"]),
  variant(
    "Ogg Opus",
    streamOf("audio/ogg"),
    "ogg",
    ["audio/ogg", "ogg names its rate"],
    { samplingRate: 24_000 },
    24_000,
  ),
  variant("mu-law", streamOf("audio/x-mulaw"), "mulaw", ["audio/x-mulaw"]),
  variant("basic audio", streamOf("audio/basic"), "mulaw", ["audio/basic"], {}, 8000),
];

const everyModel: readonly AudioRow[] = variants.flatMap(({ rate, rules, name: _name, ...variant }) =>
  modelIds.map((modelId) => ({
    ...variant,
    modelId,
    rules: [...rules, "every model, every variant", "9.2", "1.3", "1.2"] as const,
    rate: typeof rate === "number" ? rate : modelId === "arcana" ? rate[1] : rate[0],
  })),
);

/** Returns rows that request a format of one model at the given rates. */
function atRates(
  rules: readonly RuleId[],
  modelId: ModelId,
  form: Pick<AudioRow, "accept" | "form" | "codec" | "mediaType"> & { readonly audioFormat?: Codec },
  rates: readonly (number | readonly [requested: number, returned: number])[],
): AudioRow[] {
  const { audioFormat, ...rest } = form;
  return rates.map((each) => {
    const [samplingRate, rate] = typeof each === "number" ? [each, each] : each;
    return { rules, modelId, ...rest, rate, body: { samplingRate, ...(audioFormat && { audioFormat }) } };
  });
}

const pcm = { ...streamOf("audio/pcm"), codec: "pcm" } as const;
const wav = { ...streamOf("audio/wav"), codec: "wav" } as const;
const mp3 = { ...streamOf("audio/mpeg"), codec: "mp3" } as const;
const ogg = { ...streamOf("audio/ogg"), codec: "ogg" } as const;
const mulaw = { ...streamOf("audio/x-mulaw"), codec: "mulaw" } as const;
const basic = { ...streamOf("audio/basic"), codec: "mulaw" } as const;

/** The nine sampling rates of MP3: each rate itself, and a lower rate, which is rounded up to it. */
const mp3Steps = [
  [4000, 8000],
  [8000, 8000],
  [8001, 11_025],
  [11_025, 11_025],
  [11_026, 12_000],
  [12_001, 16_000],
  [16_001, 22_050],
  [22_051, 24_000],
  [24_001, 32_000],
  [32_001, 44_100],
  [44_100, 44_100],
] as const;
const beyondMist = [
  [1, 8000],
  [44_101, 48_000],
  [48_000, 48_000],
  [96_000, 48_000],
] as const;

const rates: readonly AudioRow[] = [
  ...atRates(
    ["2.1 mist samplingRate", "8 mist samplingRate", "4.4 Request fields"],
    "mist",
    pcm,
    [4000, 4001, 7919, 8000, 11_025, 12_000, 15_999, 16_000, 22_050, 24_000, 32_000, 44_099, 44_100],
  ),
  ...atRates(["4.1 samplingRate"], "mistv2", { ...events, codec: "pcm", audioFormat: "pcm" }, [4000, 44_100]),
  ...atRates(["4.1 samplingRate"], "mist", { ...events, codec: "mulaw", audioFormat: "mulaw" }, [8000]),
  ...atRates(["4.1 samplingRate", "MP3 rates"], "mist", { ...events, codec: "mp3", audioFormat: "mp3" }, [
    [4000, 8000],
    44_100,
  ]),
  ...atRates(
    ["4.2 Request fields"],
    "mist",
    { ...json, codec: "wav", audioFormat: "wav" },
    [4000, 9999, 44_100],
  ),
  ...atRates(
    ["4.3 samplingRate", "8 ogg samplingRate"],
    "mist",
    { ...json, codec: "ogg", audioFormat: "ogg" },
    [8000, 12_000, 16_000, 24_000],
  ),
  ...atRates(["audio/ogg"], "arcana", ogg, [8000, 12_000, 16_000]),
  ...atRates(["MP3 rates"], "mist", mp3, mp3Steps),
  ...atRates(["MP3 rates"], "arcana", mp3, beyondMist),
  ...atRates(
    ["MP3 rates", "JSON shape"],
    "arcana",
    { ...json, codec: "mp3", audioFormat: "mp3" },
    beyondMist,
  ),
  ...atRates(
    ["8 arcana self-hosted samplingRate", "self-hosted arcana rates", "2.1 arcana samplingRate"],
    "arcana",
    wav,
    [1, 2, 100, 3999, 8000, 11_111, 44_101, 48_000, 96_000, 383_999, 384_000],
  ),
  ...atRates(["audio/x-mulaw"], "mist", mulaw, [4000, 8000, 44_100]),
  ...atRates(["audio/x-mulaw"], "arcana", mulaw, [96_000]),
  ...atRates(["audio/basic"], "mistv2", basic, [8000]),
];

const ofMist = { modelId: "mist", body: {}, rate: 22_050 } as const;
const html = { ...json, ...ofMist, codec: "wav", rules: ["no Accept"] } as const;

/** Other values of `Accept` for a form and format. */
const aliases: readonly AudioRow[] = [
  { ...wav, accept: "audio/*", rules: ["audio/*"], modelId: "arcana", body: {}, rate: 24_000 },
  { ...mp3, ...ofMist, accept: "audio/mp3", rules: ["audio/mpeg"] },
  { ...basic, accept: "audio/PCMU", rules: ["audio/basic"], modelId: "arcana", body: {}, rate: 8000 },
  { ...html, accept: "*/*" },
  { ...html, accept: "text/html" },
  { ...html, accept: "*/*", codec: "mp3", body: of("mp3") },
];

export const audioRows: readonly AudioRow[] = [...everyModel, ...rates, ...aliases];
