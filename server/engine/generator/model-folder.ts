import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type AudioManifest,
  type Manifest,
  manifestName,
  readManifest,
  type TokensManifest,
} from "./manifest.ts";
import { createTokenize, type Tokenize } from "./prompt.ts";

/** A model as it lies in its folder: the manifest, every file of it checked, and what reads its texts. */
export type GeneratorModel =
  | { readonly folder: string; readonly manifest: TokensManifest; readonly tokenize: Tokenize }
  | { readonly folder: string; readonly manifest: AudioManifest };

const tokenizerName = "tokenizer.json";

/** @throws Error that names the folder, and the file and field that is missing or wrong. */
export async function readModelFolder(folder: string): Promise<GeneratorModel> {
  try {
    const manifest = readManifest((await readNamed(folder, manifestName)).toString());
    for (const [name, sha256] of Object.entries(manifest.sha256)) await check(folder, name, sha256);
    if (manifest.kind === "audio") return { folder, manifest };
    for (const name of [tokenizerName, manifest.codec.onnx]) requireChecked(manifest, name);
    const tokenizer = (await readNamed(folder, tokenizerName)).toString();
    return { folder, manifest, tokenize: createTokenize(tokenizer, manifest.prompt) };
  } catch (cause) {
    throw new Error(`The arcana model in ${folder}: ${(cause as Error).message}`, { cause });
  }
}

/** What is read here is what the manifest speaks of. */
function requireChecked({ sha256 }: Manifest, name: string): void {
  if (sha256[name] === undefined) throw new Error(`${manifestName}: /sha256 must have ${name}`);
}

async function readNamed(folder: string, name: string): Promise<Buffer> {
  try {
    return await readFile(join(folder, name));
  } catch (cause) {
    throw new Error(`${name} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

async function check(folder: string, name: string, wanted: string): Promise<void> {
  const sum = await sha256Of(folder, name);
  if (sum !== wanted) throw new Error(`${name}: its sha256 is ${sum}, not ${wanted}`);
}

async function sha256Of(folder: string, name: string): Promise<string> {
  const hash = createHash("sha256");
  try {
    for await (const piece of createReadStream(join(folder, name))) hash.update(piece as Buffer);
  } catch (cause) {
    throw new Error(`${name} cannot be read: ${(cause as Error).message}`, { cause });
  }
  return hash.digest("hex");
}
