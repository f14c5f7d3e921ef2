import { describe, expect, it } from "vitest";
import type { Profile } from "../../../config/contract/models.ts";
import type { Voice } from "../../../config/contract/voices.ts";
import { readRequest, type SpeechRequest } from "../../../server/api/request/speech-request.ts";
import { chooseVariant } from "../../../server/api/request/variants.ts";
import { Failure } from "../../../server/contract/errors.ts";

const voice = (id: string, models: Voice["models"], language: string): Voice => ({
  id,
  models,
  language,
  gender: "female",
  engine: { kind: "espeak", voice: "x", pitch: 50, stretch: 1 },
  license: "test",
});
const voices = [
  voice("luna", ["arcana"], "eng"),
  voice("abbie", ["mist", "mistv2"], "eng"),
  voice("lucia", ["mist", "mistv2"], "spa"),
];

function read(accept: string, body: unknown, profile: Profile = "self-hosted"): SpeechRequest {
  return readRequest(body, { variant: chooseVariant(accept), profile, voices, highestRate: 384_000 });
}

function refusal(accept: string, body: unknown, profile?: Profile): Failure {
  try {
    read(accept, body, profile);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("the request was not refused");
}

const json = "application/json";
const pcm = "audio/pcm";
const wav = "audio/wav";
const events = "text/event-stream";
const mist = { speaker: "abbie", text: "Hello." };
const arcana = { speaker: "luna", text: "Hello.", modelId: "arcana" };

describe("a request with only the required fields", () => {
  it("has the defaults of the specification", () => {
    expect(read(wav, { speaker: "luna", text: "x" }).invocation).toEqual({
      modelId: "arcana",
      speaker: "luna",
      lang: "eng",
      text: "x",
      stretch: 1,
      noTextNormalization: false,
      pauseBetweenBrackets: false,
      phonemizeBetweenBrackets: false,
      inlineStretch: [],
      sampling: { repetitionPenalty: 1.5, temperature: 0.5, topP: 1, maxTokens: 1200 },
      unsetSampling: ["repetitionPenalty", "temperature", "topP", "maxTokens"],
    });
  });

  it("reports which sampling options are not set, also if a value is the default", () => {
    const { sampling, unsetSampling } = read(wav, { ...arcana, temperature: 0.5, top_p: 0.9 }).invocation;
    expect(sampling).toEqual({ repetitionPenalty: 1.5, temperature: 0.5, topP: 0.9, maxTokens: 1200 });
    expect(unsetSampling).toEqual(["repetitionPenalty", "maxTokens"]);
    const all = { repetition_penalty: 1.5, temperature: 0.5, top_p: 1, max_tokens: 1200 };
    expect(read(wav, { ...arcana, ...all }).invocation).not.toHaveProperty("unsetSampling");
    expect(read(pcm, mist).invocation).not.toHaveProperty("unsetSampling");
  });
});

describe("an accepted request", () => {
  it.each(["eng", "en", "en-US", "ENG"])("may select an English voice with lang %s", (lang) => {
    expect(read(pcm, { ...mist, lang }).invocation.lang).toBe("eng");
  });

  it("uses noTextNormalization if reduceLatency is present too", () => {
    const both = { reduceLatency: true, noTextNormalization: false };
    expect(read(pcm, { ...mist, ...both }).invocation.noTextNormalization).toBe(false);
  });

  it("may have a list of numbers in inlineSpeedAlpha", () => {
    expect(read(pcm, { ...mist, inlineSpeedAlpha: "0.5, 2,1" }).invocation.inlineStretch).toEqual([
      0.5, 2, 1,
    ]);
    expect(read(pcm, { ...mist, inlineSpeedAlpha: " " }).invocation.inlineStretch).toEqual([]);
  });

  it("has its lone surrogates replaced by U+FFFD", () => {
    expect(read(pcm, { ...mist, text: "a\ud800b" }).invocation.text).toBe("a\ufffdb");
  });
});

describe("an invalid request", () => {
  it.each<[accept: string, body: unknown, pointer: string, detail: string]>([
    [pcm, { text: "x" }, "/speaker", "is required"],
    [pcm, { speaker: "abbie" }, "/text", "is required"],
    [pcm, { ...mist, text: "" }, "/text", "must be a non-empty string"],
    [pcm, { ...mist, text: "  \n" }, "/text", "more than white space"],
    [pcm, { ...mist, text: 7 }, "/text", "not a number"],
    [pcm, { ...mist, text: "x".repeat(501) }, "/text", "has 501 characters; the limit with mist is 500"],
    [pcm, { ...mist, speaker: "luna" }, "/speaker", "must be a voice of mist"],
    [wav, { ...mist }, "/speaker", "must be a voice of arcana"],
    [pcm, { ...mist, modelId: "mist3" }, "/modelId", "one of mist, mistv2, arcana"],
    [pcm, { ...mist, lang: "spa" }, "/lang", "speaks eng"],
    [pcm, { ...mist, lang: "!!" }, "/lang", "speaks eng"],
    [pcm, { ...mist, speaker: "luna" }, "/speaker", '"luna" is a voice of arcana: set modelId to arcana'],
    [wav, mist, "/speaker", '"abbie" is a voice of mist and mistv2: set modelId to mist'],
    [
      pcm,
      { ...mist, speaker: "no-such-voice" },
      "/speaker",
      '"no-such-voice" is unknown. GET /v1/voices lists the voices',
    ],
    [pcm, { ...mist, text: ["secret"] }, "/text", "not a list"],
    [pcm, { ...mist, text: "" }, "/text", "not an empty string"],
    [
      pcm,
      JSON.parse('{"speaker":"abbie","text":"x","samplingRate":1e999}'),
      "/samplingRate",
      "not a number that is too large",
    ],
    [pcm, { ...mist, samplingRate: 3999 }, "/samplingRate", "from 4000 to 44100, not 3999"],
    [pcm, { ...mist, samplingRate: 44_101 }, "/samplingRate", "from 4000 to 44100"],
    [pcm, { ...mist, samplingRate: 8000.5 }, "/samplingRate", "an integer"],
    [pcm, { ...mist, samplingRate: "8000" }, "/samplingRate", 'not "8000"'],
    [pcm, { ...arcana, samplingRate: 384_001 }, "/samplingRate", "from 1 to 384000"],
    ["audio/basic", { ...mist, samplingRate: 16_000 }, "/samplingRate", "one of 8000"],
    [pcm, { ...mist, speedAlpha: 0 }, "/speedAlpha", "from 0.1 to 10"],
    [pcm, { ...mist, pauseBetweenBrackets: "true" }, "/pauseBetweenBrackets", "true or false"],
    [pcm, { ...mist, inlineSpeedAlpha: "0.5,,1" }, "/inlineSpeedAlpha", "numbers from 0.1 to 10"],
    [pcm, { ...mist, inlineSpeedAlpha: "1,".repeat(600) }, "/inlineSpeedAlpha", "numbers"],
    [pcm, { ...arcana, top_p: 0 }, "/top_p", "above 0 and at most 1"],
    [pcm, { ...arcana, temperature: -0.1 }, "/temperature", "from 0"],
    [pcm, { ...arcana, repetition_penalty: 0 }, "/repetition_penalty", "above 0"],
    [pcm, { ...arcana, max_tokens: 199 }, "/max_tokens", "from 200 to 5000"],
    [json, mist, "/audioFormat", "is required"],
    [json, { ...mist, audioFormat: "flac" }, "/audioFormat", "one of wav, ogg, mp3, mulaw, pcm"],
    [json, { ...mist, audioFormat: "ogg" }, "/samplingRate", "is required with audioFormat ogg"],
    [
      json,
      { ...mist, audioFormat: "ogg", samplingRate: 22_050 },
      "/samplingRate",
      "8000, 12000, 16000, 24000",
    ],
    ["audio/ogg", mist, "/samplingRate", "is required with Accept: audio/ogg"],
    ["audio/ogg", { ...mist, samplingRate: 48_000 }, "/samplingRate", "8000, 12000, 16000, 24000"],
    [events, { ...mist, audioFormat: "wav" }, "/audioFormat", "one of mp3, mulaw, pcm"],
    [pcm, { ...mist, saveOovs: "x" }, "/saveOovs", "true or false"],
    [pcm, [mist], "", "must be a JSON object"],
    [pcm, "text", "", "must be a JSON object"],
    [pcm, null, "", "must be a JSON object"],
  ])("with Accept %s and %o is refused with the pointer %j", (accept, body, pointer, detail) => {
    const failure = refusal(accept, body);
    expect(failure.code).toBe("invalid_request");
    expect(failure.fields).toEqual([{ pointer, detail: expect.stringContaining(detail) }]);
  });

  it("for arcana on the cloud profile has speedAlpha or an unsupported sampling rate", () => {
    expect(read(pcm, { ...arcana, samplingRate: 96_000 }, "cloud").rate).toBe(96_000);
    const failure = refusal(pcm, { ...arcana, samplingRate: 9999, speedAlpha: 2 }, "cloud");
    expect(failure.fields.map((field) => field.pointer)).toEqual(["/samplingRate", "/speedAlpha"]);
  });
});
