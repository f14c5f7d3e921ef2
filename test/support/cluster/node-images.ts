/** Builds images for the local cluster without an image builder and without a registry. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);
const cache = process.env.SVC_TTS_CACHE ?? join(homedir(), ".cache", "svc-tts");
/** The containerd socket of the first node of the local cluster. */
const containerdSocket = join(cache, "cluster/run/containerd.sock");

export interface HandmadeImage {
  readonly name: string;
  /** The folder that becomes the new layer. Its paths are relative to the root of the image. */
  readonly layer: string;
  /** The docker-archive of the base image. Without it, the image has only the new layer. */
  readonly base?: string;
  readonly config?: { readonly Entrypoint?: readonly string[]; readonly User?: string };
}

/** An entry of `manifest.json` in a docker-archive (Docker image specification 1.2). */
interface Manifest {
  Config: string;
  RepoTags: string[];
  Layers: string[];
}

interface ImageConfig {
  config?: object;
  history?: object[];
  rootfs: { type: "layers"; diff_ids: string[] };
}

/**
 * Builds the image, and imports it into containerd on the first node. Pods must use it with `imagePullPolicy:
 * IfNotPresent`.
 */
export async function giveNodeImage(image: HandmadeImage): Promise<void> {
  const work = await mkdtemp(join(cache, "handmade-image."));
  try {
    const archive = await writeArchive(image, work);
    await execute("ctr", [
      "--address",
      containerdSocket,
      "--namespace",
      "k8s.io",
      "images",
      "import",
      archive,
    ]);
  } finally {
    await rm(work, { recursive: true });
  }
}

async function writeArchive({ name, layer, base, config }: HandmadeImage, work: string): Promise<string> {
  const content = join(work, "content");
  const { manifest, image } = await baseOf(base, content);
  await execute("tar", ["--create", "--file", join(content, "own.tar"), ...reproducibly, "-C", layer, "."]);
  manifest.RepoTags = [name];
  manifest.Layers.push("own.tar");
  image.config = { ...image.config, ...config };
  image.rootfs.diff_ids.push(`sha256:${await sha256(join(content, "own.tar"))}`);
  // The history must have an entry for each layer, or must be absent.
  delete image.history;
  const text = JSON.stringify(image);
  manifest.Config = `${createHash("sha256").update(text).digest("hex")}.json`;
  await writeFile(join(content, manifest.Config), text);
  await writeFile(join(content, "manifest.json"), JSON.stringify([manifest]));
  const archive = join(work, "image.tar");
  const files = [...new Set(["manifest.json", manifest.Config, ...manifest.Layers])];
  await execute("tar", ["--create", "--dereference", "--file", archive, "-C", content, ...files]);
  return archive;
}

const reproducibly = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];

async function baseOf(base: string | undefined, into: string) {
  await execute("mkdir", [into]);
  if (base === undefined) {
    const manifest: Manifest = { Config: "", RepoTags: [], Layers: [] };
    const image: ImageConfig = { ...platform, rootfs: { type: "layers", diff_ids: [] } };
    return { manifest, image };
  }
  await execute("tar", ["--extract", "--file", base, "-C", into]);
  const [manifest] = JSON.parse(await readFile(join(into, "manifest.json"), "utf8")) as Manifest[];
  if (manifest === undefined) throw new Error(`${base} is not a docker-archive: its manifest.json is empty`);
  const image = JSON.parse(await readFile(join(into, manifest.Config), "utf8")) as ImageConfig;
  return { manifest, image };
}

const platform = { os: "linux", architecture: process.arch === "x64" ? "amd64" : process.arch };

async function sha256(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return hash.digest("hex");
}
