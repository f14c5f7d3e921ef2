/**
 * Test vectors from the published schema and a published client: each message in both encodings
 * (specification 11.16).
 */
import { fromBinary, fromJson, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { decodeRequest, encodeResponse } from "../../../../../server/api/sockets/v1/envelopes.ts";
import {
  requestSchema,
  responseSchema,
  splitStrategyOf,
} from "../../../../../server/api/sockets/v1/schema.ts";

const requests: readonly (readonly [hex: string, json: JsonValue])[] = [
  [
    "0a036374781a2f1203656e671a046c756e61220648656c6c6f2e2a140a09617564696f2f70636d10c0bb011d0000a03f300242024000",
    {
      contextId: "ctx",
      start: {
        ...{ language: "eng", speaker: "luna", text: "Hello." },
        audioParameters: { audioFormat: "audio/pcm", samplingRate: 24_000, timeScaleFactor: 1.25 },
        splitStrategy: "SPLIT_STRATEGY_NONE",
        codaParameters: { textLookaheadTokens: 0 },
      },
    },
  ],
  [
    "0a036374781a2c12001a002a120a09617564696f2f70636d10001d0000000030004a10080010011a080000003f0000803f2000",
    {
      contextId: "ctx",
      start: {
        ...{ language: "", speaker: "" },
        audioParameters: { audioFormat: "audio/pcm", samplingRate: 0, timeScaleFactor: 0 },
        splitStrategy: "SPLIT_STRATEGY_UNSPECIFIED",
        mistParameters: {
          ...{ pauseBetweenBrackets: false, phonemizeBetweenBrackets: true },
          ...{ inlineTimeScaleFactors: [0.5, 1], saveOovs: false },
        },
      },
    },
  ],
  ["0a036374781a00", { contextId: "ctx", start: {} }],
  [
    "12190a0c4170692d4b6579207465737412027b7d1a051203656e67",
    { config: { authorization: "Api-Key test", license: "{}", defaults: { language: "eng" } } },
  ],
  ["0a03637478220648656c6c6f2e", { contextId: "ctx", text: "Hello." }],
  ["0a036374782200", { contextId: "ctx", text: "" }],
  ["0a036374782a00", { contextId: "ctx", end: {} }],
  ["0a036374783200", { contextId: "ctx", cancel: {} }],
  ["0a077475726e2d3432220568656c6c6f", { contextId: "turn-42", text: "hello" }],
  ["2a00", { end: {} }],
  ["3200", { cancel: {} }],
  [
    "1a062a0210003002",
    { start: { audioParameters: { samplingRate: 0 }, splitStrategy: "SPLIT_STRATEGY_NONE" } },
  ],
];

const responses: readonly (readonly [hex: string, json: JsonValue])[] = [
  [
    "121108011203656e6712037370611a03656e67",
    { ready: { protocol: 1, languages: ["eng", "spa"], defaultLanguage: "eng" } },
  ],
  ["120408011a00", { ready: { protocol: 1, defaultLanguage: "" } }],
  ["12020801", { ready: { protocol: 1 } }],
  ["120608011202656e", { ready: { protocol: 1, languages: ["en"] } }],
  ["0a036374781a050a03726571", { contextId: "ctx", started: { requestId: "req" } }],
  ["0a0363747822040001feff", { contextId: "ctx", audio: "AAH+/w==" }],
  ["0a036374782200", { contextId: "ctx", audio: "" }],
  ["0a077475726e2d343222020102", { contextId: "turn-42", audio: "AQI=" }],
  ["0a036374782a00", { contextId: "ctx", done: {} }],
  ["0a036374783200", { contextId: "ctx", cancelled: {} }],
  [
    "0a036374783a200a0d696e76616c69645f696e707574120a74657374206572726f721a03726571",
    { contextId: "ctx", error: { kind: "invalid_input", message: "test error", requestId: "req" } },
  ],
  [
    "0a036374783a0c0a08696e7465726e616c1a00",
    { contextId: "ctx", error: { kind: "internal", requestId: "" } },
  ],
  ["2a0c0a0a0a08080e120462757379", { done: { timestamps: { status: { code: 14, message: "busy" } } } }],
  [
    "2a0e0a0c120a0a02686912001a020801",
    { done: { timestamps: { spans: [{ text: "hi", start: "0s", end: "1s" }] } } },
  ],
];

const bytes = (text: string) => Buffer.from(text);

describe("a message of the client (11.16)", () => {
  test.each(requests)("%s has the same content in both encodings", (hex, json) => {
    const binary = decodeRequest(Buffer.from(hex, "hex"), true);
    expect(toJson(requestSchema, binary)).toEqual(json);
    const text = decodeRequest(bytes(JSON.stringify(json)), false);
    expect(Buffer.from(toBinary(requestSchema, text)).toString("hex")).toBe(hex);
  });

  test("may use the snake_case names of the schema and unknown fields", () => {
    const json = '{"context_id":"a","start":{"split_strategy":"SPLIT_STRATEGY_LATER","more":1},"more":[]}';
    const { contextId, payload } = decodeRequest(bytes(json), false);
    expect([contextId, payload.case]).toEqual(["a", "start"]);
    const binary = decodeRequest(Buffer.from("0a0161f80301", "hex"), true);
    expect([binary.contextId, binary.payload.case]).toEqual(["a", undefined]);
  });

  test.each(["{", "[]", "5", '{"text":5}', '{"text":"a","end":{}}', '{"start":{"text":"a"},"cancel":{}}'])(
    "is refused if it is %s",
    (json) => {
      expect(() => decodeRequest(bytes(json), false)).toThrow();
    },
  );

  test("is refused if it is not valid protobuf", () => {
    expect(() => decodeRequest(Buffer.from("0aff", "hex"), true)).toThrow();
  });

  test.each([
    [undefined, "sentence"],
    [0, "sentence"],
    [1, "sentence"],
    [2, "none"],
    [3, "accumulateSentence"],
    [9, "sentence"],
  ])("with the split strategy %s selects %s", (splitStrategy, expected) => {
    const { payload } = decodeRequest(bytes(JSON.stringify({ start: { splitStrategy } })), false);
    if (payload.case !== "start") throw new Error("no start");
    expect(splitStrategyOf(payload.value)).toBe(expected);
  });
});

describe("a message of the server (11.16)", () => {
  test.each(responses)("%s has the same content in both encodings", (hex, json) => {
    const message = fromBinary(responseSchema, new Uint8Array(Buffer.from(hex, "hex")));
    expect(toJson(responseSchema, message)).toEqual(json);
    expect(fromJson(responseSchema, json)).toEqual(message);
    const { contextId, payload } = message;
    if (payload.case === undefined) throw new Error("no payload");
    expect(Buffer.from(encodeResponse("binary", contextId, payload) as Uint8Array).toString("hex")).toBe(hex);
    const text = JSON.parse(encodeResponse("json", contextId, payload) as string) as object;
    expect(text).toEqual(json);
  });
});
