import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import {
  type ArcanaManifest,
  type AudioManifest,
  manifestName,
  readArcanaManifest,
  type TokensManifest,
} from "./manifest.ts";
import { createTokenize, type Tokenize } from "./prompt.ts";

/** A model in its folder: the manifest, its verified files, and the tokenizer. */
export type GeneratorModel =
  | { readonly folder: string; readonly manifest: TokensManifest; readonly tokenize: Tokenize }
  | { readonly folder: string; readonly manifest: AudioManifest };

const tokenizerName = "tokenizer.json";

/** @throws Error that names the folder, and the missing or invalid file and field. */
export async function readModelFolder(folder: string): Promise<GeneratorModel> {
  try {
    const manifest = readArcanaManifest((await readNamed(folder, manifestName)).toString());
    const read = manifest.kind === "audio" ? [] : [tokenizerName, manifest.codec.onnx];
    for (const name of [...read, ...(await filesOf(folder))]) requireChecked(manifest, name);
    for (const [name, sha256] of Object.entries(manifest.sha256)) await check(folder, name, sha256);
    if (manifest.kind === "audio") return { folder, manifest };
    const tokenizer = (await readNamed(folder, tokenizerName)).toString();
    return { folder, manifest, tokenize: createTokenize(tokenizer, manifest.prompt) };
  } catch (cause) {
    throw new Error(`The arcana model in ${folder}: ${(cause as Error).message}`, { cause });
  }
}

/** vLLM selects the files of the folder that it loads, so the manifest must list every file. */
function requireChecked({ sha256 }: ArcanaManifest, name: string): void {
  if (sha256[name] === undefined)
    throw new Error(
      `${manifestName}: /sha256 must have ${name}: every file of the model has its digest there`,
    );
}

/** Files that no program reads: hidden files of volumes and of `svc-tts fetch`. */
const unread = /(^|\/)(\.|lost\+found(\/|$)|(README|LICENSE|NOTICE)[^/]*$)|\.md$/iu;

/** All files below the folder that a program may read, with slashes in their names. */
async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .filter((name) => name !== manifestName && !unread.test(name))
    .toSorted();
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
