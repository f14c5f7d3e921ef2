import { expect, test } from "vitest";
import { jsonEvents, readJsonFrame, readTextFrame } from "../../../../server/api/sockets/messages.ts";

test.each([
  ['{"text":"Hello. ","contextId":"a"}', { text: "Hello. ", contextId: "a", markup: {} }],
  ['{"contextId":null,"text":"Hello."}', { text: "Hello.", contextId: null, markup: {} }],
  ['{"text":"","operation":null,"more":[1]}', { text: "", contextId: null, markup: {} }],
  [
    '{"text":"a","phonemizeBetweenBrackets":true,"inlineSpeedAlpha":"0.5,2"}',
    { text: "a", contextId: null, markup: { phonemizeBetweenBrackets: true, inlineSpeedAlpha: "0.5,2" } },
  ],
])("readJsonFrame reads %s as text", (frame, text) => {
  expect(readJsonFrame(frame)).toEqual({ kind: "text", ...text });
});

test.each([
  ['{"operation":"flush","contextId":"a"}', "flush"],
  ['{"operation":"clear"}', "clear"],
  ['{"operation":"eos","contextId":null}', "eos"],
  ["<EOS>", "eos"],
  [" <CLEAR>\n", "clear"],
])("readJsonFrame reads %s as an operation", (frame, operation) => {
  expect(readJsonFrame(frame)).toEqual({ kind: "operation", operation });
});

test.each([
  ["{"],
  ["[]"],
  ["null"],
  ["Hello"],
  ["{}"],
  ['{"text":5}'],
  ['{"operation":"stop"}'],
  ['{"operation":"constructor"}'],
  ['{"text":"a","contextId":5}'],
])("readJsonFrame reports %s as malformed", (frame) => {
  expect(readJsonFrame(frame)).toMatchObject({ kind: "malformed", problem: expect.any(String) });
});

test("readTextFrame reads a frame as an operation only if the frame is exactly one token", () => {
  expect(readTextFrame(" <FLUSH> ")).toEqual({ kind: "operation", operation: "flush" });
  expect(readTextFrame("Say <EOS>")).toMatchObject({ kind: "text", text: "Say <EOS>", contextId: null });
  expect(readTextFrame("constructor")).toMatchObject({ kind: "text" });
});

test("jsonEvents writes events in the form that published clients read", () => {
  expect(JSON.parse(jsonEvents.chunk(Uint8Array.of(0, 1, 254, 255), "a"))).toEqual({
    type: "chunk",
    data: "AAH+/w==",
    contextId: "a",
  });
  expect(JSON.parse(jsonEvents.timestamps([{ word: "Hi", start: 0, end: 0.5 }], null))).toEqual({
    type: "timestamps",
    word_timestamps: { words: ["Hi"], start: [0], end: [0.5] },
    contextId: null,
  });
  expect(JSON.parse(jsonEvents.done(null, true))).toEqual({ type: "done", done: true, contextId: null });
  expect(JSON.parse(jsonEvents.done("a", false))).toEqual({ type: "done", contextId: "a" });
  expect(JSON.parse(jsonEvents.error("No.", undefined))).toEqual({ type: "error", message: "No." });
  expect(JSON.parse(jsonEvents.error("No.", null))).toEqual({
    type: "error",
    message: "No.",
    contextId: null,
  });
});
