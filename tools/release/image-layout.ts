/**
 * Writes images as an OCI image layout (https://github.com/opencontainers/image-spec/blob/main/image-layout.md).
 * The same files give the same digests.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { normalizeTar } from "./tar.ts";

export interface ImageDetails {
  readonly epochSeconds: number;
  /** Labels and annotations that every image gets, such as the commit of its sources. */
  readonly labels: Readonly<Record<string, string>>;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: Platform;
}

export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}

interface HistoryStep {
  readonly created?: string;
  readonly created_by?: string;
  readonly comment?: string;
}

/** The fields of an image configuration that this module reads. The other fields are copied. */
interface ImageConfig {
  readonly architecture: string;
  readonly os: string;
  readonly variant?: string;
  readonly config?: { readonly Labels?: Readonly<Record<string, string>> };
  readonly history?: readonly HistoryStep[];
}

const MEDIA_TYPES = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;
/**
 * Node's compile cache contains hashes with a random seed, and Node ignores it on a CPU with other instructions than
 * those of the build. A release keeps only its empty folder. A start then takes a third of a second longer.
 */
const isReproducible = (path: string): boolean => !/^(\.\/)?app\/\.compile-cache\/./.test(path);
const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
/** Fields of the configuration that container engines set, and that differ between builds. */
const ENGINE_FIELDS = ["container", "container_config", "docker_version", "id", "parent"];

/**
 * Adds an image to the layout in `folder`.
 * @param archive the folder of an unpacked docker-archive
 * @returns the descriptor of its manifest
 */
export function addImage(folder: string, archive: string, details: ImageDetails): Descriptor {
  const [image] = readJson<{ Config: string; Layers: string[] }[]>(join(archive, "manifest.json"));
  if (image === undefined) throw new Error(`${archive}/manifest.json lists no image`);
  const config = readJson<ImageConfig>(join(archive, image.Config));
  const layers = image.Layers.map((path) => {
    const tar = normalizeTar(readLayer(join(archive, path)), details.epochSeconds, isReproducible);
    return { diffId: digestOf(tar), blob: writeBlob(folder, gzipSync(tar), MEDIA_TYPES.layer) };
  });
  const { architecture, os, variant } = config;
  const manifest = {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.manifest,
    config: writeJson(
      folder,
      normalizeConfig(
        config,
        layers.map(({ diffId }) => diffId),
        details,
      ),
      MEDIA_TYPES.config,
    ),
    layers: layers.map(({ blob }) => blob),
    annotations: details.labels,
  };
  const platform = { os, architecture, ...(variant !== undefined && { variant }) };
  return { ...writeJson(folder, manifest, MEDIA_TYPES.manifest), platform };
}

/** Writes the index of a layout, with an image for each platform. Returns the digest of the index. */
export function writeIndex(folder: string, manifests: readonly Descriptor[], details: ImageDetails): string {
  const index = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MEDIA_TYPES.index,
      manifests: manifests.toSorted((a, b) => (architectureOf(a) < architectureOf(b) ? -1 : 1)),
      annotations: details.labels,
    }),
  );
  writeFileSync(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  writeFileSync(join(folder, "index.json"), index);
  return digestOf(index);
}

/** Returns the descriptors of the images of a layout. */
export const imagesOf = (folder: string): readonly Descriptor[] =>
  readJson<{ manifests: Descriptor[] }>(join(folder, "index.json")).manifests;

/** Returns the annotations of a layout: the labels with which its images were built. */
export const labelsIn = (folder: string): ImageDetails["labels"] =>
  readJson<{ annotations?: ImageDetails["labels"] }>(join(folder, "index.json")).annotations ?? {};

export const digestOf = (bytes: Buffer): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

const architectureOf = (descriptor: Descriptor): string => descriptor.platform?.architecture ?? "";

function normalizeConfig(config: ImageConfig, diffIds: readonly string[], details: ImageDetails): object {
  const created = new Date(details.epochSeconds * 1000).toISOString().replace(".000Z", "Z");
  const kept = Object.fromEntries(Object.entries(config).filter(([field]) => !ENGINE_FIELDS.includes(field)));
  return {
    ...kept,
    created,
    config: { ...config.config, Labels: { ...config.config?.Labels, ...details.labels } },
    history: (config.history ?? []).map((step) => normalizeStep(step, created)),
    rootfs: { type: "layers", diff_ids: diffIds },
  };
}

/**
 * Returns a step of the history without the identifiers that an engine computes from times: those of earlier
 * layers, and of files that COPY added.
 */
function normalizeStep({ comment: _, created_by: command, ...step }: HistoryStep, created: string): object {
  const readable = command?.replace(/\b(file|dir|multi):[0-9a-f]{64}/g, "$1");
  return { ...step, created, ...(readable !== undefined && { created_by: readable }) };
}

function writeJson(folder: string, value: object, mediaType: string): Descriptor {
  return writeBlob(folder, Buffer.from(JSON.stringify(value)), mediaType);
}

function writeBlob(folder: string, bytes: Buffer, mediaType: string): Descriptor {
  const digest = digestOf(bytes);
  mkdirSync(join(folder, "blobs/sha256"), { recursive: true });
  writeFileSync(join(folder, "blobs", digest.replace(":", "/")), bytes);
  return { mediaType, digest, size: bytes.length };
}

/** Reads a layer. Docker exports compressed layers if it stores images with containerd. */
function readLayer(path: string): Buffer {
  const bytes = readFileSync(path);
  return bytes.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC) ? gunzipSync(bytes) : bytes;
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8")) as T;
