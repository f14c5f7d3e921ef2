import { describe, expect, test } from "vitest";
import { voices } from "../../../../config/contract/voices.ts";
import { defaultAliases, resolveModel, resolveSpeaker } from "../../../../server/api/request/aliases.ts";
import { readSubprotocols, resolveEndpoint } from "../../../../server/api/sockets/endpoint.ts";
import { booleanOrText, numberOrText, readParameters } from "../../../../server/api/sockets/parameters.ts";
import { createSocketLimits } from "../../../../server/api/sockets/socket-limits.ts";
import {
  longestTextOf,
  readSettings,
  type SocketRules,
  speechRequestFor,
} from "../../../../server/api/sockets/socket-settings.ts";
import { Failure } from "../../../../server/contract/errors.ts";
import { FakeClock } from "../../../support/fake-clock.ts";

const rules: SocketRules = { voices, profile: "self-hosted", highestRate: 384_000, aliases: defaultAliases };
const settingsOf = (query: string) => readSettings(readParameters(query), rules);

describe("resolveEndpoint", () => {
  test.each([
    ["/ws3", "", "", { route: "/ws3", protocol: "json" }],
    ["/ws2/", "", "", { route: "/ws2", protocol: "json" }],
    ["/v1/svc-tts/ws3", "", "", { route: "/ws3", protocol: "json" }],
    ["/ws", "speaker=luna", "", { route: "/ws", protocol: "binary" }],
    ["/a/ws", "audioFormat=pcm", "", { route: "/ws", protocol: "binary" }],
    ["/ws", "speaker=luna", "rime.v1.json", { route: "/ws", protocol: "v1" }],
    ["/ws", "lang=eng", "", { route: "/ws", protocol: "v1" }],
    ["/coda/ws", "", "other, rime.v1.binary", { route: "/ws", protocol: "v1", pathModel: "coda" }],
    ["/ws4", "", "", undefined],
    ["/ws3/more", "", "", undefined],
    ["/", "", "", undefined],
  ])("selects for path %s, query %j and subprotocols %j: %j", (path, query, subprotocols, endpoint) => {
    expect(resolveEndpoint(path, readSubprotocols(subprotocols), readParameters(query))).toEqual(endpoint);
  });
});

describe("readParameters", () => {
  test.each([
    ["speaker=luna&lang=eng", { speaker: "luna", lang: "eng" }],
    ["a=1&a=2", { a: "1" }],
    ["text=a b,c [d]&x=%zz&y=%20z", { text: "a b,c [d]", x: "%zz", y: " z" }],
    ["a=&b=null&c=None&d", {}],
    ["a=b=c", { a: "b=c" }],
    ["", {}],
  ])("parses %j as %j", (query, expected) => {
    expect(Object.fromEntries(readParameters(query))).toEqual(expected);
  });

  test("leaves values as text, which numberOrText and booleanOrText convert", () => {
    expect(["1", "0.5", ".5", " 2 ", "1e3", "x", "0x1"].map(numberOrText)).toEqual([
      1,
      0.5,
      0.5,
      2,
      1000,
      "x",
      "0x1",
    ]);
    expect(["true", "True", "1", "FALSE", "0", "maybe", "constructor"].map(booleanOrText)).toEqual([
      true,
      true,
      true,
      false,
      false,
      "maybe",
      "constructor",
    ]);
  });
});

describe("the aliases of models and voices", () => {
  test.each([
    ["coda", "lyra", "arcana", "lyra"],
    ["arcana", "celeste", "arcana", "estelle"],
    ["mistv3", "cove", "mist", "robert"],
    ["mistv1", "alan", "mist", "alan"],
    [undefined, "luna", "arcana", "luna"],
    [undefined, "alan", "mist", "alan"],
    ["unknown", "alan", "mist", "alan"],
    ["constructor", "no-such-voice", "mist", "no-such-voice"],
  ])("resolve the model %s with the speaker %s to %s and %s", (requested, speaker, model, voice) => {
    expect(resolveModel(requested, speaker, voices, defaultAliases)).toBe(model);
    expect(resolveSpeaker(speaker, model as "mist", voices, defaultAliases)).toBe(voice);
  });
});

describe("the settings of a socket", () => {
  test.each([
    ["speaker=alan", "bySentence"],
    ["speaker=alan&segment=", "bySentence"],
    ["speaker=alan&segment=never", "never"],
    ["speaker=alan&immediate=True", "immediate"],
  ])("from %s select the segmentation %s", (query, segment) => {
    expect(settingsOf(query).segment).toBe(segment);
  });

  test.each([
    ["audioFormat=audio/l16", "pcm", 22_050],
    ["audioFormat=PCMU&samplingRate=8000", "mulaw", 8000],
    ["audioFormat=opus", "ogg", 24_000],
    ["audioFormat=webm", "webm", 24_000],
    ["", "wav", 22_050],
    ["modelId=coda&speaker=luna&audioFormat=pcm", "pcm", 24_000],
  ])("from %j select %s at %i Hz", (query, format, rate) => {
    expect(settingsOf(`${query}&speaker=alan`).speech).toMatchObject({ format, rate });
  });

  test.each([
    ["modelId=mist&speaker=alan&speedAlpha=2", 2],
    ["modelId=mistv2&speaker=alan&speedAlpha=2", 2],
    ["modelId=mistv3&speaker=alan&speedAlpha=2", 0.5],
    ["modelId=coda&speaker=luna&speedAlpha=2", 0.5],
    ["modelId=mist&speaker=alan&timeScaleFactor=0.1", 0.4],
    ["modelId=mist&speaker=alan&timeScaleFactor=9", 2.5],
    ["modelId=mistv2&speaker=alan&timeScaleFactor=2", 1],
  ])("from %s stretch speech by %f", (query, stretch) => {
    expect(settingsOf(query).speech.invocation.stretch).toBeCloseTo(stretch);
  });

  test.each(["audioFormat=aac", "segment=often", "timeScaleFactor=slow", "speedAlpha=x", "lang=fra"])(
    "with %s are refused",
    (query) => {
      expect(() => settingsOf(`${query}&speaker=alan`)).toThrow(Failure);
    },
  );

  test("limit the text of one synthesis for mist and not for arcana", () => {
    expect(longestTextOf(settingsOf("speaker=alan"))).toBe(1000);
    expect(longestTextOf(settingsOf("speaker=luna"))).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("speechRequestFor", () => {
  const synthesis = (text: string, markup = {}) => ({ number: 0, contextId: null, text, markup });

  test("passes one inline speed for each word in brackets", () => {
    const settings = settingsOf("speaker=alan&inlineSpeedAlpha=0.5, 2");
    const values = (text: string) => speechRequestFor(settings, synthesis(text)).invocation.inlineStretch;
    expect(values("[slow] and [fast]")).toEqual([0.5, 2]);
    expect(values("no brackets")).toEqual([]);
    expect(values("[a] [b] [c]")).toEqual([0.5, 2, 1]);
  });

  test("writes pauses in whole milliseconds if pauses are on", () => {
    const paused = settingsOf("speaker=alan&pauseBetweenBrackets=true");
    expect(speechRequestFor(paused, synthesis("a <200.0> b")).invocation.text).toBe("a <200> b");
    expect(speechRequestFor(settingsOf("speaker=alan"), synthesis("a <200.0> b")).invocation.text).toBe(
      "a <200.0> b",
    );
  });

  test("applies the markup options of the text", () => {
    const settings = settingsOf("speaker=alan");
    const { invocation } = speechRequestFor(
      settings,
      synthesis("{k1Ast0xm}", { phonemizeBetweenBrackets: true }),
    );
    expect(invocation.phonemizeBetweenBrackets).toBe(true);
    expect(() => speechRequestFor(settings, synthesis("[a]", { inlineSpeedAlpha: "fast" }))).toThrow(Failure);
  });
});

describe("the socket limits of an API key", () => {
  test("limit the open sockets, and accept a new socket after one closes", () => {
    const limits = createSocketLimits({ perKey: 1, newPerSecond: 100, clock: new FakeClock() });
    const leave = limits.enter("a");
    expect(() => limits.enter("a")).toThrow(Failure);
    limits.enter("b");
    leave();
    leave();
    limits.enter("a");
    expect(() => limits.enter("a")).toThrow(Failure);
  });

  test("limit the new sockets in each second", async () => {
    const clock = new FakeClock();
    const limits = createSocketLimits({ perKey: 100, newPerSecond: 2, clock });
    limits.enter("a")();
    limits.enter("a")();
    expect(() => limits.enter("a")).toThrow(Failure);
    await clock.advance(500);
    limits.enter("a")();
    expect(() => limits.enter("a")).toThrow(Failure);
  });
});
