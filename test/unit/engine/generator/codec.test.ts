import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { toInt16 } from "../../../../server/engine/neural/int16.ts";
import { Decoder } from "../../../../server/engine/vllm/codec/decoder.ts";
import { type CodecFrame, FrameReader } from "../../../../server/engine/vllm/codec/frame-reader.ts";
import { Seam } from "../../../../server/engine/vllm/codec/seam.ts";
import { WindowPlan } from "../../../../server/engine/vllm/codec/windows.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { seamError as largestError } from "../../../support/generator/model-folder.ts";
import { tinyCodec, tinyDecoder } from "../../../support/generator/tiny-model.ts";

const { base, codebook, slots } = tinyCodec;

/** Returns pseudo-random frames that are equal in every run. */
function someFrames(count: number): CodecFrame[] {
  return Array.from({ length: count }, (_, f) =>
    slots.map((_, slot) => (f * 37 + slot * 11 + f * f * 5) % codebook),
  );
}

function tokensOf(frames: readonly CodecFrame[]): number[] {
  return frames.flatMap((frame) => frame.map((code, slot) => base + slot * codebook + code));
}

describe("the codec tokens of a generator", () => {
  const frames = someFrames(3);
  const [first = [], second = [], third = []] = frames;

  test("become frames if they arrive in pieces of five tokens", () => {
    const reader = new FrameReader(tinyCodec);
    const tokens = tokensOf(frames);
    const read = tokens.flatMap((_, i) => (i % 5 === 0 ? reader.push(tokens.slice(i, i + 5)) : []));
    expect(read).toEqual(frames);
    expect(reader.dropped).toBe(0);
  });

  test.each([
    ["a token below all codes", [base - 1], 1],
    ["a token above all codes", [base + slots.length * codebook], 1],
    ["a token of a wrong slot", [base + 3 * codebook], 1],
    ["an incomplete frame", tokensOf([second]).slice(0, 4), 4],
  ])("are dropped up to the next frame if they are %s", (_, invalid, dropped) => {
    const reader = new FrameReader(tinyCodec);
    expect(reader.push([...tokensOf([first]), ...invalid, ...tokensOf([third])])).toEqual([first, third]);
    expect(reader.dropped).toBe(dropped);
  });
});

describe("the decoding of codec frames in windows", () => {
  const folder = folderOfTests("codec");
  let decoder: Decoder;
  beforeAll(async () => {
    const file = join(folder, tinyCodec.onnx);
    writeFileSync(file, tinyDecoder());
    decoder = await Decoder.load({ file, codec: tinyCodec, providers: ["cpu"] });
  });

  type Context = { readonly left: number; readonly right: number };

  /** Decodes frames as in a stream: a window is decoded as soon as the generator has written its frames. */
  async function streamed(frames: readonly CodecFrame[], context: Context): Promise<Int16Array> {
    const codec = { ...tinyCodec, ...context };
    const plan = new WindowPlan(codec);
    const seam = new Seam(codec);
    const pieces: number[] = [];
    for (let written = 1; ; written = Math.min(written + 1, frames.length)) {
      const isWhole = written === frames.length;
      if (!isWhole && written < plan.wanted) continue;
      const window = plan.next(written, isWhole);
      if (!window) break;
      const [audio = new Float32Array()] = await decoder.decode([frames.slice(window.from, window.to)]);
      const { first, end } = seam.needs(window);
      for (const sample of seam.join(toInt16(audio.subarray(first, end)), window)) pieces.push(sample);
    }
    return Int16Array.from(pieces);
  }

  /** Returns the largest difference between decoding in windows and decoding all frames at once. */
  async function seamError(frames: readonly CodecFrame[], context: Context): Promise<number> {
    const [whole = new Float32Array()] = await decoder.decode([frames]);
    const decoded = await streamed(frames, context);
    expect(decoded.length).toBe(whole.length);
    return largestError(whole, decoded);
  }

  test.each([1, 2, 3, 4, 17, 40])(
    "gives for %i frames the same audio as decoding all at once",
    async (count) => {
      expect(await seamError(someFrames(count), tinyCodec)).toBeLessThanOrEqual(0.005);
    },
  );

  test("needs its context to avoid audible seams", async () => {
    expect(await seamError(someFrames(40), { left: 0, right: 0 })).toBeGreaterThan(0.05);
    expect(await seamError(someFrames(40), { left: 2, right: 0 })).toBeGreaterThan(0.05);
  });

  test("gives the same result for windows in one batch as for single windows", async () => {
    const windows = [someFrames(8).slice(0, 4), someFrames(8).slice(4)];
    const both = await decoder.decode(windows);
    for (const [i, window] of windows.entries()) expect(both[i]).toEqual((await decoder.decode([window]))[0]);
  });

  test("refuses a graph that does not match the manifest", async () => {
    const file = join(folder, tinyCodec.onnx);
    const load = (change: object) =>
      Decoder.load({ file, codec: { ...tinyCodec, ...change }, providers: ["cpu"] });
    await expect(load({ inputs: ["codes"], slots: [0] })).rejects.toThrow('no input "codes"');
    await expect(load({ output: "sound" })).rejects.toThrow('no output "sound"');
    await expect(load({ frameSamples: 1024 })).rejects.toThrow("samples");
  });
});

test("WindowPlan starts with a short window and continues with longer ones", () => {
  const plan = new WindowPlan({ left: 2, right: 2, hops: [1, 4] });
  expect(plan.wanted).toBe(3);
  expect(plan.next(2, false)).toBeUndefined();
  expect(plan.next(3, false)).toEqual({ from: 0, to: 3, begin: 0, end: 1 });
  expect([plan.wanted, plan.least]).toEqual([7, 4]);
  expect(plan.next(5, false)).toEqual({ from: 0, to: 5, begin: 1, end: 3 });
  expect(plan.next(10, false)).toEqual({ from: 1, to: 9, begin: 3, end: 7 });
  expect(plan.next(10, true)).toEqual({ from: 5, to: 10, begin: 7, end: 10 });
  expect(plan.next(10, true)).toBeUndefined();
});
