import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Token } from "../../../../server/contract/speech.ts";
import { openEspeak } from "../../../../server/engine/espeak/engine.ts";
import { MountedVoices } from "../../../../server/engine/neural/mounted-voices.ts";
import { type RewriteOutcome, rewriteGraph } from "../../../../server/engine/rewriting/rewrite.ts";
import type { ProcessPool } from "../../../../server/engine/runtime/process-pool.ts";
import { VoicesFolder } from "../../../support/voices/folder.ts";
import { type KokoroChoice, tinyKokoro } from "../../../support/voices/random-voices.ts";

const never = new AbortController().signal;
const logged: Record<string, unknown>[] = [];
const log = { info: (fields: object) => void logged.push({ ...fields }), warn: () => undefined };

let reader: ProcessPool;
beforeAll(async () => {
  reader = await openEspeak({ processes: 1, log });
});
afterAll(() => reader.close());

let folder: VoicesFolder;
const opened: MountedVoices[] = [];
beforeEach(() => {
  folder = new VoicesFolder();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((mounted) => mounted.close()));
  folder.delete();
  logged.length = 0;
});
const at = (name: string) => join(folder.path, name);

async function mount(): Promise<MountedVoices> {
  const options = { models: ["mist"] as const, cores: 1, providers: ["cpu"], log, reader, intervalMs: 50 };
  const mounted = await MountedVoices.open({ folder: folder.path, ...options });
  opened.push(mounted);
  return mounted;
}

async function say(mounted: MountedVoices, id: string, text: string, stretch = 1) {
  const tokens = text.split(" ").map((written): Token => {
    const [, word = "", after = ""] = /^(.*?)([.,!?]*)$/.exec(written) ?? [];
    return { text: word, before: "", after, stretch: 1 };
  });
  const speaker = mounted.speakerFor(id);
  if (!speaker) throw new Error(`${id} is not served: ${JSON.stringify(mounted.problems())}`);
  const order: number[] = [];
  let samples = 0;
  for await (const frame of speaker.engine.speak({ voice: speaker.voice, tokens, stretch }, never)) {
    samples += frame.samples.length;
    order.push(...frame.times.map(({ token }) => token));
  }
  speaker.release();
  return { seconds: samples / speaker.engine.rate, order };
}

describe("a Kokoro model", () => {
  test.each<[string, KokoroChoice]>([
    ["with an output for its durations", {}],
    ["with its durations inside the graph", { durations: "inside" }],
    ["with an integer speed", { durations: "inside", speed: "int32" }],
  ])("%s synthesizes all words, at the requested speed", async (_what, choice) => {
    folder.kokoro("koko", choice);
    const mounted = await mount();
    const plain = await say(mounted, "koko-a", "Hello of the world, again.");
    const slow = await say(mounted, "koko-a", "Hello of the world, again.", 1.6);
    expect(plain.order).toEqual([0, 1, 2, 3, 4]);
    expect(slow.seconds / plain.seconds).toBeGreaterThan(1.4);
    expect(slow.seconds / plain.seconds).toBeLessThan(1.8);
  });

  test.each([
    ["a letter", "A."],
    ["a digit", "7"],
    ["a letter without punctuation", "I"],
    ["a sound", "Hm?"],
    ["a word of 1,200 letters", "supercalifragilistic".repeat(60)],
  ])("synthesizes %s", async (_what, text) => {
    folder.kokoro("koko", { durations: "inside" });
    const { seconds, order } = await say(await mount(), "koko-a", text);
    expect(seconds).toBeGreaterThan(0.05);
    expect(new Set(order)).toEqual(new Set([0]));
  });

  test("with an unknown eSpeak NG voice is reported as invalid when it is loaded", async () => {
    folder.kokoro("koko", { espeak: "en-gb" });
    const mounted = await mount();
    expect(mounted.problems()).toEqual([
      {
        file: "koko/manifest.json",
        field: "/voices/0/espeak",
        message: expect.stringMatching(
          /is en-gb, and eSpeak NG cannot read text with this voice .*could not select voice en-gb/,
        ),
      },
    ]);
    expect(mounted.voices()).toEqual([]);
  });
});

const quantized = { durations: "inside", isQuantized: true } as const;

/** Rewrites the graph of the model `koko`. */
function rewrite(): Promise<RewriteOutcome> {
  const { vocab } = JSON.parse(readFileSync(at("koko/config.json"), "utf8")) as {
    vocab: Record<string, number>;
  };
  const spec = {
    kind: "kokoro",
    model: at("koko/model.onnx"),
    sha256: "",
    rate: 24_000,
    runtime: { providers: ["cpu"], threads: 1, threadsAlone: 1 },
    ids: vocab,
    voices: [{ style: at("koko/a.bin"), espeak: "en-us" }],
  } as const;
  const parts = {
    front: at("koko/front.onnx"),
    generator: at("koko/generator.onnx"),
    means: at("koko/means.bin"),
  };
  return rewriteGraph({ spec, target: at("koko/rewritten.onnx"), parts }, never);
}

describe("the graph of an installed model", () => {
  test("is not rewritten without integer convolutions", async () => {
    folder.kokoro("koko", { durations: "inside" });
    const reason = "the graph has no integer convolutions to rewrite";
    expect(await rewrite()).toEqual({ kind: "none", reason });
    expect(existsSync(at("koko/rewritten.onnx"))).toBe(false);
  });

  test("is rewritten only if the rewritten graph is faster and has the same output", async () => {
    folder.kokoro("koko", quantized);
    const outcome = await rewrite();
    // A graph of this size may become slower, but its output must not change.
    if (outcome.kind === "none")
      expect(outcome.reason).toMatch(
        /with uint8 weights, the rewritten graph is not faster on this machine$/,
      );
    else {
      const file = readFileSync(at("koko/rewritten.onnx"));
      expect(createHash("sha256").update(file).digest("hex")).toBe(outcome.sha256);
      const reason = "the graph must have one transposed convolution with stride 10; it has 0";
      expect(outcome.windows).toEqual({ kind: "none", reason });
    }
  });

  test.each([
    ["the rewritten graph if its file is valid", tinyKokoro(quantized), /^rewritten graph, uint8$/],
    ["the original graph if the file is missing", undefined, /^original graph: .* cannot be used: ENOENT/],
    [
      "the rewritten graph without windows if their files are missing",
      tinyKokoro(quantized),
      /^rewritten graph, uint8; its windows cannot be used: ENOENT/,
      true,
    ],
    [
      "the original graph if the file is incomplete",
      Buffer.alloc(500),
      /^original graph: .* cannot be used: the sha256/,
    ],
  ])("is %s, and the log has the variant", async (_what, file, variant, hasWindows = false) => {
    folder.kokoro("koko", quantized);
    if (file) folder.write("koko/rewritten.onnx", file);
    const manifest = JSON.parse(readFileSync(at("koko/manifest.json"), "utf8")) as object;
    const sha256 = createHash("sha256").update(tinyKokoro(quantized)).digest("hex");
    const fileOf = (path: string) => ({ path, sha256 });
    const windows = hasWindows && {
      front: fileOf("front.onnx"),
      generator: fileOf("generator.onnx"),
      means: fileOf("means.bin"),
      channels: 4,
      styles: ["a.bin"],
    };
    const rewritten = { model: "rewritten.onnx", sha256, weights: "uint8", windows };
    folder.json("koko/manifest.json", { ...manifest, rewritten });
    const mounted = await mount();
    expect((await say(mounted, "koko-a", "Hello.")).seconds).toBeGreaterThan(0.05);
    expect(logged.find((fields) => "voices" in fields)?.variant).toMatch(variant);
  });
});
