import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { voices } from "../../../../../config/contract/voices.ts";
import { defaultAliases } from "../../../../../server/api/request/aliases.ts";
import {
  mergeDefaults,
  modelOfConnection,
  readContextSettings,
} from "../../../../../server/api/sockets/v1/context-settings.ts";
import { errorKindOf } from "../../../../../server/api/sockets/v1/error-kinds.ts";
import { requestSchema, type SynthesisParameters } from "../../../../../server/api/sockets/v1/schema.ts";
import { type ErrorCode, errorCodes, Failure } from "../../../../../server/contract/errors.ts";

const rules = { voices, profile: "self-hosted", highestRate: 384_000, aliases: defaultAliases } as const;

type Start = NonNullable<Parameters<typeof startOf>[0]>;
function startOf(value: object): SynthesisParameters {
  const { payload } = create(requestSchema, { payload: { case: "start", value } });
  if (payload.case !== "start") throw new Error("no start");
  return payload.value;
}
const settingsOf = (start: Start, modelId?: string) => readContextSettings(startOf(start), modelId, rules);

describe("the settings of a context", () => {
  test.each([
    [{}, "wav", 24_000],
    [{ audioFormat: "audio/pcm", samplingRate: 8000 }, "pcm", 8000],
    [{ audioFormat: "audio/l16", samplingRate: 0 }, "pcm", 24_000],
    [{ audioFormat: "audio/pcmu", samplingRate: 16_000 }, "mulaw", 16_000],
    [{ audioFormat: "audio/wav" }, "wav", 24_000],
    [{ audioFormat: "audio/mpeg" }, "mp3", 24_000],
    [{ audioFormat: "audio/ogg;codecs=opus" }, "ogg", 24_000],
    [{ audioFormat: "audio/webm;codecs=opus", samplingRate: 16_000 }, "webm", 16_000],
    [{ audioFormat: "" }, "wav", 24_000],
  ])("from %j select %s at %i Hz", (audioParameters, format, rate) => {
    expect(settingsOf({ speaker: "alan", audioParameters }).socket.speech).toMatchObject({ format, rate });
  });

  test.each([
    [{ speaker: "alan" }, "mist", "alan"],
    [{ speaker: "luna" }, "arcana", "luna"],
    [{ speaker: "lyra", language: "en" }, "arcana", "lyra"],
    [{ speaker: "alan", language: "" }, "mist", "alan"],
    [{ speaker: "alan", language: "eng" }, "mist", "alan"],
  ])("from %j select the model %s and the voice %s", (start, modelId, speaker) => {
    expect(settingsOf(start).socket.speech.invocation).toMatchObject({ modelId, speaker });
  });

  test("use the model of their connection", () => {
    expect(settingsOf({ speaker: "lyra" }, "coda").socket.speech.invocation.modelId).toBe("arcana");
    expect(settingsOf({ speaker: "cove" }, "mist").socket.speech.invocation.speaker).toBe("robert");
  });

  test.each([
    [{ text: "" }, undefined, "immediate", true],
    [{ text: "", splitStrategy: 3 }, undefined, "bySentence", false],
    [{ text: "", splitStrategy: 2 }, undefined, "never", false],
    [{ text: "Hello. There.", splitStrategy: 2 }, "Hello. There.", "immediate", false],
  ])(
    "from %j have the whole text %j and the segmentation %s",
    (start, wholeText, segment, textsAreSentences) => {
      const settings = settingsOf({ speaker: "alan", ...start });
      expect(settings).toMatchObject({ wholeText, textsAreSentences, socket: { segment } });
    },
  );

  test("include the markup options of the mist models and the time scale", () => {
    const { socket } = settingsOf({
      speaker: "alan",
      audioParameters: { timeScaleFactor: 2 },
      mistParameters: {
        ...{ pauseBetweenBrackets: true, phonemizeBetweenBrackets: true },
        ...{ inlineTimeScaleFactors: [0.5, 2], saveOovs: true },
      },
    });
    expect(socket.timeScale).toBe(2);
    expect(socket.speech.invocation).toMatchObject({
      ...{ stretch: 2, pauseBetweenBrackets: true, phonemizeBetweenBrackets: true, saveOovs: true },
    });
    expect(socket.parameters.get("inlineSpeedAlpha")).toBe("0.5, 2");
  });

  test.each([
    {},
    { speaker: "no-such-voice" },
    { speaker: "alan", language: "fra" },
    { speaker: "alan", audioParameters: { audioFormat: "audio/x-unknown" } },
    { speaker: "alan", audioParameters: { samplingRate: -1 } },
    { speaker: "alan", audioParameters: { timeScaleFactor: Number.NaN } },
    { speaker: "alan", customLexicon: [{ spelling: "au lait", pronunciation: "o" }] },
    { speaker: "alan", customLexicon: new Array(501).fill({ spelling: "a", pronunciation: "eI" }) },
  ])("are refused: %j", (start) => {
    expect(() => settingsOf(start)).toThrow(Failure);
  });

  test("use the last pronunciation of each word", () => {
    const customLexicon = [
      { spelling: "Hello", pronunciation: "h E . l oU" },
      { spelling: "it’s", pronunciation: "I t s" },
      { spelling: "hello", pronunciation: 'h @ . " l oU' },
    ];
    const { invocation } = settingsOf({ speaker: "alan", customLexicon }).socket.speech;
    expect(invocation.lexicon).toEqual({ hello: "h0xl1o", "it's": "0Its" });
  });

  test.each([
    ["q", 'customLexicon[1].pronunciation contains "q"'],
    ["_h", 'customLexicon[1].pronunciation contains "_"'],
    ["", "customLexicon[1].pronunciation must contain at least one sound"],
    ['k"', "customLexicon[1].pronunciation has a stress mark without a vowel"],
    ["n".repeat(201), "customLexicon[1].pronunciation is too long"],
  ])("name the lexicon entry with the invalid pronunciation %j", (pronunciation, problem) => {
    const customLexicon = [
      { spelling: "a", pronunciation: "eI" },
      { spelling: "b", pronunciation },
    ];
    expect(() => settingsOf({ speaker: "alan", customLexicon })).toThrow(problem);
  });

  test("use the defaults of the connection for absent values", () => {
    const defaults = startOf({ speaker: "alan", text: "ignored", audioParameters: { samplingRate: 8000 } });
    const merged = mergeDefaults(defaults, startOf({ audioParameters: { audioFormat: "audio/pcm" } }));
    expect(merged).toMatchObject({ speaker: "alan", text: "" });
    expect(readContextSettings(merged, undefined, rules).socket.speech.rate).toBe(24_000);
  });
});

describe("the model of a connection", () => {
  test.each([
    ["coda", "mist", "mist.example.test", "coda"],
    ["svc-tts", "mistv2", "mist.example.test", "mistv2"],
    [undefined, "unknown", "coda.example.test:8000", "coda"],
    ["svc-tts", undefined, "tts.example.test", undefined],
    ["constructor", undefined, undefined, undefined],
  ])("with path %s, query %s and host %s is %s", (path, query, host, expected) => {
    expect(modelOfConnection(path, query, host, defaultAliases)).toBe(expected);
  });
});

test("errorKindOf maps each error code to a kind that published clients know", () => {
  const kindOf = (code: ErrorCode) => errorKindOf(new Failure(code, "x"));
  const kinds: Readonly<Partial<Record<ErrorCode, string>>> = {
    invalid_request: "invalid_input",
    unauthorized: "unauthenticated",
    insufficient_scope: "permission_denied",
    license_required: "permission_denied",
    not_found: "not_found",
    too_many_streams: "resource_exhausted",
    rate_limited: "resource_exhausted",
    saturated: "resource_exhausted",
    deadline_exceeded: "timeout",
    draining: "unavailable",
    model_unreachable: "unavailable",
    model_failed: "internal",
    internal: "internal",
  };
  for (const [code, kind] of Object.entries(kinds)) expect(kindOf(code as ErrorCode)).toBe(kind);
  for (const code of errorCodes) expect(kindOf(code)).toBeTruthy();
});
