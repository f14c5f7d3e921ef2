import type { RuleId } from "./rules.ts";

type Rules = readonly RuleId[];
type Accept = string;

export const mist = { speaker: "alan", text: "Good day." };
const mistv2 = { ...mist, modelId: "mistv2" };
/** Greedy sampling makes the engine deterministic. */
export const arcana = { speaker: "luna", text: "Good day.", modelId: "arcana", temperature: 0 };

const pcm = "audio/pcm";
const wav = "audio/wav";
const json = "application/json";
const events = "text/event-stream";
const asWav = { ...mist, audioFormat: "wav" };
const asOgg = { ...mist, audioFormat: "ogg" };
const bracketed = (text: string, inlineSpeedAlpha?: string) => ({ ...mist, text, inlineSpeedAlpha });
const typicalOf = (field: "repetition_penalty" | "temperature") =>
  [`2.1 arcana ${field}`, "typical is no limit"] as const;
const without = <Body extends object>(body: Body, field: keyof Body) => ({ ...body, [field]: undefined });

/** Values of a wrong type, by the expected type. */
const noString = [7, true, ["x"], { a: 1 }];
const noNumber = ["1", true, [1], {}];
const noBoolean = ["true", 1, 0, []];

/** Invalid values of each field, including values of a wrong type. */
const wrong = {
  modelId: ["", "mistv3", "Mist", "mist ", ...noString],
  audioFormat: ["", "flac", "WAV", "opus", ...noString],
  lang: ["spa", "es", "de-DE", "x", "", "english", "en_US", ...noString],
  samplingRate: [3999, 44_101, 0, -8000, 8000.5, 1e300, ...noNumber],
  oggRate: [7999, 11_025, 22_050, 44_100, 48_000, "16000"],
  arcanaRate: [0, -1, 384_001, 0.5, 24_000.5, "24000"],
  speedAlpha: [0, -1, 0.09, 10.1, 1e300, ...noNumber],
  inlineSpeedAlpha: [
    "fast",
    "1,,2",
    "1;2",
    "0",
    "-1",
    "11",
    ",",
    "1,",
    "Infinity",
    "0x1",
    "1e400",
    1,
    [1],
    true,
  ],
  top_p: [0, -0.5, 1.001, ...noNumber],
  max_tokens: [199, 5001, 0, -200, 200.5, ...noNumber],
} as const;

type Refusal = readonly [rules: Rules, accept: Accept, body: unknown, pointers: readonly string[]];

function each(
  rules: Rules,
  accept: Accept,
  base: object,
  field: string,
  values: readonly unknown[],
): Refusal[] {
  return values.map((value) => [rules, accept, { ...base, [field]: value }, [`/${field}`]]);
}

/** Requests that are rejected with status 400 and exactly these JSON pointers. */
export const refusals: readonly Refusal[] = [
  [["2.1 mist speaker", "400"], pcm, without(mist, "speaker"), ["/speaker"]],
  [["2.1 mist speaker", "null"], pcm, { ...mist, speaker: null }, ["/speaker"]],
  ...each(["2.1 mist speaker", "strict fields"], pcm, mist, "speaker", [
    "",
    "no-such-voice",
    "ALAN",
    ...noString,
  ]),
  [["2.1 mist speaker", "nothing clamped"], pcm, { ...mist, speaker: "luna" }, ["/speaker"]],
  [["2.1 arcana speaker", "nothing clamped"], wav, { ...arcana, speaker: "alan" }, ["/speaker"]],
  [["2.1 arcana speaker"], wav, without(arcana, "speaker"), ["/speaker"]],
  [["2.1 mist text"], pcm, without(mist, "text"), ["/text"]],
  [["2.1 mist text", "null"], pcm, { ...mist, text: null }, ["/text"]],
  ...each(["2.1 mist text", "strict fields"], pcm, mist, "text", ["", " \n\t", ...noString]),
  [["2.1 arcana text"], wav, without(arcana, "text"), ["/text"]],
  [["8 mist text", "code points"], pcm, { ...mist, text: "a".repeat(501) }, ["/text"]],
  [["8 mist text", "code points"], events, { ...mistv2, text: "😀".repeat(501) }, ["/text"]],
  ...each(["2.1 mist modelId", "9.2", "7.2"], pcm, mist, "modelId", wrong.modelId),
  [["2.1 arcana modelId", "nothing clamped"], wav, { ...mist, modelId: "arcana" }, ["/speaker"]],
  [["modelId absent"], wav, mist, ["/speaker"]],

  [["4.2 audioFormat", "JSON needs audioFormat"], json, mist, ["/audioFormat"]],
  [["4.2 audioFormat", "null"], json, { ...mist, audioFormat: null }, ["/audioFormat"]],
  ...each(["2.1 mist audioFormat", "strict fields"], json, mist, "audioFormat", wrong.audioFormat),
  ...each(["4.1 audioFormat"], events, mist, "audioFormat", ["wav", "ogg", "aac", 7]),
  ...each(["no Accept"], "*/*", mist, "audioFormat", ["aac", 7]),

  ...each(["2.1 mist lang", "7.2"], pcm, mist, "lang", wrong.lang),
  ...each(["2.1 arcana lang", "7.2"], wav, arcana, "lang", ["fra", "zz"]),
  [["2.1 mist lang"], pcm, { ...mist, speaker: "lucia", lang: "eng" }, ["/lang"]],

  ...each(["8 mist samplingRate", "4.4 Request fields"], pcm, mist, "samplingRate", wrong.samplingRate),
  ...each(["8 mist samplingRate", "2.1 mist samplingRate"], pcm, mistv2, "samplingRate", [3999, 44_101]),
  ...each(["4.1 samplingRate"], events, mist, "samplingRate", [3999, 44_101]),
  ...each(["4.2 Request fields"], json, asWav, "samplingRate", [3999, 44_101]),
  [["4.3 samplingRate", "ogg names its rate"], json, asOgg, ["/samplingRate"]],
  [["4.3 samplingRate", "null"], json, { ...asOgg, samplingRate: null }, ["/samplingRate"]],
  [["ogg names its rate"], "audio/ogg", mist, ["/samplingRate"]],
  [["ogg names its rate"], "audio/ogg", arcana, ["/samplingRate"]],
  ...each(["8 ogg samplingRate"], json, asOgg, "samplingRate", wrong.oggRate),
  ...each(["8 ogg samplingRate"], "audio/ogg", arcana, "samplingRate", [48_000, 22_050]),
  ...each(["audio/basic"], "audio/basic", mist, "samplingRate", [16_000, 7999]),
  ...each(["audio/basic"], "audio/PCMU", arcana, "samplingRate", [24_000]),
  ...each(["self-hosted arcana rates"], wav, arcana, "samplingRate", wrong.arcanaRate),

  ...each(["2.1 mist speedAlpha"], pcm, mist, "speedAlpha", wrong.speedAlpha),
  ...each(["2.1 arcana speedAlpha"], wav, arcana, "speedAlpha", [0, -1, ...noNumber]),
  ...each(["2.1 mist noTextNormalization"], pcm, mist, "noTextNormalization", noBoolean),
  ...each(["reduceLatency"], pcm, mist, "reduceLatency", noBoolean),
  ...each(["2.1 mist pauseBetweenBrackets"], pcm, mist, "pauseBetweenBrackets", noBoolean),
  ...each(["2.1 mist phonemizeBetweenBrackets"], pcm, mist, "phonemizeBetweenBrackets", noBoolean),
  ...each(["2.1 mist saveOovs", "saveOovs"], pcm, mist, "saveOovs", noBoolean),
  ...each(["2.1 mist saveOovs"], json, asWav, "saveOovs", ["true"]),
  ...each(["saveOovs"], "audio/mpeg", mist, "saveOovs", ["true"]),
  ...each(["2.1 mist inlineSpeedAlpha"], pcm, bracketed("[a]"), "inlineSpeedAlpha", wrong.inlineSpeedAlpha),
  [["inline pairs"], pcm, bracketed("so [very] [good]", "2"), ["/inlineSpeedAlpha"]],
  [["inline pairs"], pcm, bracketed("so [very] good", "2,2"), ["/inlineSpeedAlpha"]],
  [["inline pairs"], pcm, { ...mist, inlineSpeedAlpha: "2" }, ["/inlineSpeedAlpha"]],
  [["phonemes"], pcm, { ...mist, text: "say {q!}", phonemizeBetweenBrackets: true }, ["/text"]],
  [["phonemes"], pcm, { ...mist, text: "say {}", phonemizeBetweenBrackets: true }, ["/text"]],
  [["phonemes"], events, { ...mist, text: "say {k3t}", phonemizeBetweenBrackets: true }, ["/text"]],

  ...each(typicalOf("repetition_penalty"), wav, arcana, "repetition_penalty", [0, -1, ...noNumber]),
  ...each(typicalOf("temperature"), wav, arcana, "temperature", [-0.001, ...noNumber]),
  ...each(["2.1 arcana top_p", "8 top_p"], wav, arcana, "top_p", wrong.top_p),
  ...each(["2.1 arcana max_tokens", "8 max_tokens"], wav, arcana, "max_tokens", wrong.max_tokens),
  [
    ["400", "422 never", "7.2"],
    pcm,
    { speaker: "alan", text: 1, samplingRate: 1, speedAlpha: "x", lang: "fra" },
    ["/lang", "/samplingRate", "/text", "/speedAlpha"],
  ],
  ...[[], "text", 7, null, true].map((body): Refusal => [["400"], pcm, body, [""]]),
];

/** Requests that only the cloud profile rejects. */
export const cloudRefusals: readonly Refusal[] = [
  ...each(
    ["8 arcana cloud samplingRate", "cloud arcana"],
    wav,
    arcana,
    "samplingRate",
    [7999, 8001, 12_000, 16_001, 32_000, 95_999, 192_000],
  ),
  ...each(["2.1 arcana speedAlpha", "cloud arcana"], wav, arcana, "speedAlpha", [0.5, 2]),
];

/** The sampling rates of arcana with the cloud profile (specification 8). */
export const cloudRates = [8000, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000];

/** Valid requests at the limits of the fields, with status 200. */
export const accepted: readonly (readonly [rules: Rules, accept: Accept, body: object])[] = [
  [["8 mist text", "code points"], pcm, { ...mist, text: `${"a ".repeat(249)}ok` }],
  [["8 mist text", "code points"], pcm, { ...mist, text: `${"😀".repeat(498)}ok` }],
  [["8 arcana text", "2.1 arcana text"], wav, { ...arcana, text: `${"a ".repeat(249)}ok ok` }],
  [["8 max_tokens"], wav, { ...arcana, max_tokens: 200 }],
  [["8 max_tokens"], wav, { ...arcana, max_tokens: 5000 }],
  [["8 top_p", "typical is no limit"], wav, { ...arcana, top_p: 1e-9 }],
  [["typical is no limit", "2.1 arcana temperature"], wav, { ...arcana, temperature: 50 }],
  [["typical is no limit", "2.1 arcana repetition_penalty"], wav, { ...arcana, repetition_penalty: 1e-3 }],
  [["typical is no limit"], wav, { ...arcana, repetition_penalty: 1e6 }],
  [["2.1 mist speedAlpha"], pcm, { ...mist, speedAlpha: 0.1 }],
  [["2.1 mist speedAlpha"], pcm, { ...mist, speedAlpha: 10 }],
  [["2.1 arcana speedAlpha"], wav, { ...arcana, speedAlpha: 10 }],
  [["2.1 Content-Type"], pcm, { ...mist, text: "¡Qué! naïve 日本 \u0000 \u202e" }],
];

const allOfMist = {
  speedAlpha: 1,
  noTextNormalization: false,
  pauseBetweenBrackets: false,
  phonemizeBetweenBrackets: false,
  lang: "eng",
};
const allOfArcana = { repetition_penalty: 1.5, top_p: 1, max_tokens: 1200, speedAlpha: 1, lang: "eng" };
const wrongForArcana = { repetition_penalty: "x", temperature: -1, top_p: 9, max_tokens: 1 };
const wrongForMist = {
  noTextNormalization: 7,
  reduceLatency: "x",
  pauseBetweenBrackets: "x",
  phonemizeBetweenBrackets: 1,
  inlineSpeedAlpha: 3,
  saveOovs: "x",
};
const nothing = (fields: object) => Object.fromEntries(Object.keys(fields).map((name) => [name, null]));
const shout = { text: "On 5 <500> {w1Rld} [so] it is." };
const marked = { ...mist, ...shout };
const markup = { pauseBetweenBrackets: true, phonemizeBetweenBrackets: true, inlineSpeedAlpha: "2" };
const numbers = { ...mist, text: "It is 5 km." };

/** Pairs of requests with the same meaning. Their responses must be equal in every byte. */
export const equal: readonly (readonly [rules: Rules, accept: Accept, one: object, other: object])[] = [
  [["1.5"], pcm, mist, mist],
  [["2.1 mist modelId", "modelId absent"], pcm, mist, { ...mist, modelId: "mist" }],
  [["2.1 mist modelId", "modelId absent"], "audio/mpeg", mist, { ...mist, modelId: "mist" }],
  [["2.1 mist modelId", "1.3"], "*/*", mist, { ...mist, modelId: "mist" }],
  [["modelId absent", "2.1 arcana modelId"], wav, without(arcana, "modelId"), arcana],
  [["modelId absent"], "audio/*", without(arcana, "modelId"), arcana],
  [["4.4 Request fields", "default rates"], pcm, mist, { ...mist, samplingRate: 16_000 }],
  [["default rates"], pcm, arcana, { ...arcana, samplingRate: 24_000 }],
  [["2.1 mist samplingRate"], "audio/mpeg", mistv2, { ...mistv2, samplingRate: 22_050 }],
  [["2.1 arcana samplingRate"], wav, arcana, { ...arcana, samplingRate: 24_000 }],
  [["4.2 Request fields"], json, asWav, { ...asWav, samplingRate: 22_050 }],
  [["events default"], events, mist, { ...mist, audioFormat: "mp3" }],
  [["no Accept"], "*/*", mist, asWav],
  [["4.4 Request fields", "2.1 mist noTextNormalization"], pcm, mist, { ...mist, ...allOfMist }],
  [["4.1 Request fields"], events, mist, { ...mist, ...allOfMist }],
  [["4.5 Request fields", "2.1 arcana repetition_penalty"], wav, arcana, { ...arcana, ...allOfArcana }],
  [
    ["null"],
    pcm,
    mist,
    { ...mist, ...nothing({ ...allOfMist, ...wrongForMist, samplingRate: 1, modelId: 1 }) },
  ],
  [["null"], wav, { ...arcana, modelId: null }, { ...arcana, ...nothing(allOfArcana), samplingRate: null }],
  [["unknown fields"], pcm, mist, { ...mist, stream: true, voice: { a: [1] }, "": 1, constructor: "x" }],
  [["unknown fields"], wav, arcana, { ...arcana, top_k: 50, add_bos_token: false }],
  [["the other model's fields"], pcm, mist, { ...mist, ...wrongForArcana }],
  [["the other model's fields"], wav, arcana, { ...arcana, ...wrongForMist }],
  [["the other model's fields"], wav, { ...arcana, text: shout.text }, { ...arcana, ...shout, ...markup }],
  [["audioFormat ignored"], pcm, mist, { ...mist, audioFormat: "mp3" }],
  [["audioFormat ignored"], wav, arcana, { ...arcana, audioFormat: 7 }],
  [["saveOovs", "4.1 Request fields"], events, mist, { ...mist, saveOovs: "x" }],
  [["4.4 Request fields", "2.1 mist saveOovs"], pcm, mist, { ...mist, saveOovs: true }],
  [["4.2 Request fields", "2.1 mist saveOovs"], json, asWav, { ...asWav, saveOovs: true }],
  [["reduceLatency"], pcm, { ...numbers, noTextNormalization: true }, { ...numbers, reduceLatency: true }],
  [["brackets off"], pcm, marked, { ...marked, pauseBetweenBrackets: false, inlineSpeedAlpha: null }],
  [["lang absent", "ISO 639"], pcm, mist, { ...mist, lang: "en" }],
  [["ISO 639"], pcm, mist, { ...mist, lang: "eng" }],
  [["ISO 639"], wav, arcana, { ...arcana, lang: "EN" }],
  [
    ["2.1 mist phonemizeBetweenBrackets", "phonemes"],
    pcm,
    { ...mist, text: "Hello world." },
    { ...mist, text: "Hello {w1Rld}.", phonemizeBetweenBrackets: true },
  ],
  [["2.1 arcana temperature", "2.1 arcana top_p"], wav, arcana, { ...arcana, temperature: 1, top_p: 1e-9 }],
  [["Accept by q-values"], "audio/pcm;q=0.2, audio/wav;q=0.1", mist, mist],
];

/** Pairs of requests. The audio of the second request is about `times` as long as the audio of the first. */
export const longer: readonly (readonly [
  rules: Rules,
  accept: Accept,
  one: object,
  other: object,
  times: number,
])[] = [
  [["2.1 mist speedAlpha", "speedAlpha both ways"], pcm, mist, { ...mist, speedAlpha: 0.5 }, 0.5],
  [["2.1 mist speedAlpha", "speedAlpha both ways"], pcm, mistv2, { ...mistv2, speedAlpha: 2 }, 2],
  [["2.1 arcana speedAlpha", "speedAlpha both ways"], wav, arcana, { ...arcana, speedAlpha: 2 }, 0.5],
  [["2.1 arcana speedAlpha", "speedAlpha both ways"], wav, arcana, { ...arcana, speedAlpha: 0.5 }, 2],
];

const many = { ...arcana, text: "One day. Two days. Three days." };
const breathless = { ...arcana, text: "one two three four five six seven eight nine ten eleven twelve" };

/** Pairs of requests with different audio. */
export const different: readonly (readonly [rules: Rules, accept: Accept, one: object, other: object])[] = [
  [["2.1 mist noTextNormalization"], pcm, numbers, { ...numbers, noTextNormalization: true }],
  [["2.1 mist pauseBetweenBrackets", "brackets off"], pcm, marked, { ...marked, pauseBetweenBrackets: true }],
  [
    ["2.1 mist phonemizeBetweenBrackets", "brackets off"],
    pcm,
    marked,
    { ...marked, phonemizeBetweenBrackets: true },
  ],
  [
    ["2.1 mist inlineSpeedAlpha", "brackets off", "inline pairs"],
    pcm,
    marked,
    { ...marked, inlineSpeedAlpha: "2" },
  ],
  [["2.1 arcana repetition_penalty"], wav, many, { ...many, repetition_penalty: 1 }],
  [["2.1 arcana max_tokens"], wav, breathless, { ...breathless, max_tokens: 200 }],
  [["2.1 mist speaker"], pcm, mist, { ...mist, speaker: "susan" }],
];

/** The media type of the response for each `Accept`, or 406. */
export const negotiation: readonly (readonly [rules: Rules, accept: Accept, mediaType: string | 406])[] = [
  [["no Accept"], "", json],
  [["no Accept"], "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", json],
  [["no Accept"], "nonsense", json],
  [["no Accept"], "image/png", json],
  [["Accept by q-values"], "application/*", json],
  [["Accept by q-values"], "APPLICATION/JSON;q=0.9, audio/pcm;q=0.8", json],
  [["Accept by q-values"], "audio/pcm;q=0.3, audio/mpeg;q=0.7", "audio/mpeg"],
  [["Accept by q-values"], "audio/mpeg;q=0.3,audio/pcm;q=0.7", "audio/pcm"],
  [["Accept by q-values"], "audio/x-unknown, audio/pcm;q=0.1", "audio/pcm"],
  [["Accept by q-values"], "audio/pcm;q=0, audio/mpeg;q=0.001", "audio/mpeg"],
  [["Accept by q-values"], "text/event-stream;q=0.5, audio/x-mulaw;q=0.6", "audio/x-mulaw"],
  [["Accept by q-values"], "text/event-stream, */*;q=0.1", events],
  [["Accept by q-values"], "application/json;q=0, text/event-stream;q=0.1", events],
  [["Accept by q-values"], "audio/pcm ; q=0.5 , audio/mpeg ; q=0.4", "audio/pcm"],
  [["406"], "audio/x-unknown", 406],
  [["406"], "audio/x-unknown, audio/aac;q=0.5", 406],
  [["406"], "audio/wav;q=0", 406],
  [["406"], "audio/*;q=0", 406],
];
