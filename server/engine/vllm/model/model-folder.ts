import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { manifestName, readArcanaManifest } from "./manifest.ts";
import type { ArcanaManifest, AudioManifest, TokensManifest } from "./manifest-schema.ts";
import { createTokenize, type Tokenize } from "./prompt.ts";

/** A model: its folder, its manifest, and for a model of tokens its tokenizer. The files were verified. */
export type GeneratorModel =
  | { readonly folder: string; readonly manifest: TokensManifest; readonly tokenize: Tokenize }
  | { readonly folder: string; readonly manifest: AudioManifest };

const tokenizerName = "tokenizer.json";

/**
 * Reads and verifies a model.
 * @throws Error that names the folder, and the missing or invalid file and field.
 */
export async function readModelFolder(folder: string): Promise<GeneratorModel> {
  try {
    const manifest = readArcanaManifest((await readNamed(folder, manifestName)).toString());
    const readFiles = manifest.kind === "audio" ? [] : [tokenizerName, manifest.codec.onnx];
    for (const name of [...readFiles, ...(await filesOf(folder))]) requireChecked(manifest, name);
    for (const [name, sha256] of Object.entries(manifest.sha256)) await check(folder, name, sha256);
    if (manifest.kind === "audio") return { folder, manifest };
    const tokenizer = (await readNamed(folder, tokenizerName)).toString();
    return { folder, manifest, tokenize: createTokenize(tokenizer, manifest) };
  } catch (cause) {
    throw new Error(`The arcana model in ${folder}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Requires a digest for a file. vLLM selects the files that it loads from the folder, so the manifest must
 * list every file.
 */
function requireChecked({ sha256 }: ArcanaManifest, name: string): void {
  if (sha256[name] === undefined)
    throw new Error(`${manifestName}: /sha256 must have ${name}; add the digest of every file of the model`);
}

/** The files that no program reads, for example hidden files of volumes and of `svc-tts fetch`. */
const unreadNames = /(^|\/)(\.|lost\+found(\/|$)|(README|LICENSE|NOTICE)[^/]*$)|\.md$/iu;

/** Lists all files below the folder that a program may read. The names are paths relative to the folder. */
async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .filter((name) => name !== manifestName && !unreadNames.test(name))
    .toSorted();
}

async function readNamed(folder: string, name: string): Promise<Buffer> {
  try {
    return await readFile(join(folder, name));
  } catch (cause) {
    throw new Error(`${name} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

async function check(folder: string, name: string, expected: string): Promise<void> {
  const sum = await sha256Of(folder, name);
  if (sum !== expected)
    throw new Error(`${name}: the sha256 of the file is ${sum}; ${manifestName} has ${expected}`);
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
