import { expect, test } from "vitest";
import { Failure } from "../../../server/contract/errors.ts";
import { decodeFrames, encodeFrame, type WireFrame } from "../../../server/contract/wire.ts";

const stream: WireFrame[] = [
  { kind: "head", rate: 16_000, engine: "flite" },
  { kind: "words", words: [{ word: "grüß 😀", start: 0, end: 0.5 }] },
  { kind: "audio", samples: Int16Array.of(0, 1, -1, 32_767, -32_768) },
  { kind: "audio", samples: new Int16Array(0) },
  { kind: "end", samples: 5 },
];
const bytes = Buffer.concat(stream.map(encodeFrame));

async function decode(pieces: Iterable<Uint8Array>): Promise<WireFrame[]> {
  async function* source() {
    yield* pieces;
  }
  const frames: WireFrame[] = [];
  for await (const frame of decodeFrames(source())) frames.push(frame);
  return frames;
}

test("decodeFrames returns the encoded frames for a stream that is split at any byte", async () => {
  for (let at = 0; at <= bytes.length; at++) {
    expect(await decode([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(stream);
  }
});

test("decodeFrames returns the encoded frames for a stream of single bytes", async () => {
  expect(await decode([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(stream);
});

test("encodeFrame writes only the samples of a view into a larger buffer", async () => {
  const samples = Int16Array.of(9, 1, 2, 9).subarray(1, 3);
  const end = encodeFrame({ kind: "end", samples: 2 });
  expect(await decode([encodeFrame({ kind: "audio", samples }), end])).toEqual([
    { kind: "audio", samples: Int16Array.of(1, 2) },
    { kind: "end", samples: 2 },
  ]);
});

test("decodeFrames accepts an error frame as the end of a stream, with its code and message", async () => {
  const failure = new Failure("saturated", "Try again in 2 s.");
  const [frame] = await decode([encodeFrame({ kind: "error", failure })]);
  expect(frame).toMatchObject({
    kind: "error",
    failure: { code: "saturated", message: "Try again in 2 s." },
  });
});

test("decodeFrames fails for a stream that is interrupted at any byte", async () => {
  for (let length = 0; length < bytes.length; length++) {
    await expect(decode([bytes.subarray(0, length)])).rejects.toMatchObject({ code: "model_failed" });
  }
});

test.each([
  ["an unknown type", [9, 0, 0, 0, 0]],
  ["half a sample", [2, 0, 0, 0, 1, 7]],
  ["a frame of 4 GiB", [2, 255, 255, 255, 255]],
  ["a head that is not JSON", [1, 0, 0, 0, 1, 7]],
])("decodeFrames fails with model_failed for %s", async (_what, invalid) => {
  await expect(decode([Uint8Array.from(invalid)])).rejects.toMatchObject({ code: "model_failed" });
});
