import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { voicesOf } from "../../../config/contract/voices.ts";
import { Decoder } from "../../../server/engine/vllm/codec/decoder.ts";
import { FrameReader } from "../../../server/engine/vllm/codec/frame-reader.ts";
import type { TokensManifest } from "../../../server/engine/vllm/model/manifest-schema.ts";
import { byteTokenizer, llamaConfig, llamaWeights, special, tinyCodec, tinyDecoder } from "./tiny-model.ts";

/** Fields that replace fields in the manifest of the tiny model. */
export type ManifestChange = Partial<Record<keyof TokensManifest | string, unknown>>;

/**
 * Creates a folder of 1 MB like the folder of a mounted model: with a language model, its codec and its
 * manifest.
 */
export class TinyModelFolder {
  readonly path: string;
  /** The SHA-256 digests of the files. */
  readonly sha256: Readonly<Record<string, string>>;

  constructor(change: ManifestChange = {}) {
    this.path = mkdtempSync(join(tmpdir(), "svc-tts-generator-"));
    mkdirSync(this.path, { recursive: true });
    const files = {
      "config.json": Buffer.from(JSON.stringify(llamaConfig)),
      "tokenizer.json": Buffer.from(JSON.stringify(byteTokenizer())),
      "model.safetensors": llamaWeights(),
      [tinyCodec.onnx]: tinyDecoder(),
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(join(this.path, name), content);
    const sums = Object.entries(files).map(([name, content]) => [name, sha256(content)]);
    this.sha256 = Object.fromEntries(sums);
    this.write("manifest.json", JSON.stringify({ ...tinyManifest, sha256: this.sha256, ...change }));
  }

  write(name: string, content: string | Buffer): void {
    writeFileSync(join(this.path, name), content);
  }

  remove(name: string): void {
    rmSync(join(this.path, name));
  }

  delete(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export const tinyManifest: TokensManifest = {
  kind: "tokens",
  license: "Apache-2.0",
  sha256: {},
  voices: Object.fromEntries(voicesOf("arcana").map(({ id }) => [id, `voice-${id}`])),
  vllm: { args: ["--dtype", "float32", "--enforce-eager"] },
  prompt: {
    template: "{voice}: {text}",
    pre: [special.human, special.begin],
    post: [special.endOfTurn, special.machine, special.speech],
  },
  stop: [special.stop],
  context: 4096,
  codec: tinyCodec,
};

function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Decodes all frames of these tokens at once. Returns samples from -1 to 1. */
export async function decodedAtOnce(folder: string, tokens: readonly number[]): Promise<Float32Array> {
  const decoder = await Decoder.load({
    file: join(folder, tinyCodec.onnx),
    codec: tinyCodec,
    providers: ["cpu"],
  });
  const [whole = new Float32Array()] = await decoder.decode([new FrameReader(tinyCodec).push(tokens)]);
  return whole;
}

/** Returns the largest difference between two recordings, as a share of the root mean square of `whole`. */
export function seamError(whole: Float32Array, heard: Int16Array | Float32Array): number {
  const full = heard instanceof Int16Array ? 32_767 : 1;
  const loudness = Math.sqrt(whole.reduce((sum, value) => sum + value ** 2, 0) / whole.length);
  const errors = whole.map((value, i) => Math.abs(value - (heard[i] ?? 0) / full));
  return errors.reduce((most, error) => Math.max(most, error), 0) / loudness;
}
