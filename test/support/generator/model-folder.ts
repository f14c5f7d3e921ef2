import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { voicesOf } from "../../../config/contract/voices.ts";
import type { TokensManifest } from "../../../server/engine/generator/manifest.ts";
import { tinyCodec, tinyDecoder } from "./tiny-codec.ts";
import { byteTokenizer, llamaConfig, llamaWeights, special } from "./tiny-llama.ts";

/** What a test says otherwise than the tiny model's manifest does. */
export type ManifestChange = Partial<Record<keyof TokensManifest | string, unknown>>;

/** A folder with a language model, its codec and its manifest, as an administrator mounts one; 1 MB. */
export class TinyModelFolder {
  readonly path: string;
  /** Of its files. */
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
