/**
 * Assembles the files of a release in a folder: images, charts, CRDs, software bills of materials and
 * checksums. No registry is needed.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isAbsolute, join, relative, sep } from "node:path";
import { UsageError } from "../../lib/usage-error.ts";
import { CHARTS, type ChartRelease, type ImageReference, packageChart } from "./charts.ts";
import { type Descriptor, type ImageDetails, imagesOf, labelsIn, writeIndex } from "./image-layout.ts";
import type { Programs } from "./programs.ts";

export interface ReleasePlan {
  readonly version: string;
  /** Registry and folder of the artifacts, such as ghcr.io/svc-tts. */
  readonly registry: string;
  readonly details: ImageDetails;
  /** The root folder of the sources. */
  readonly sources: string;
  /** The folder of the release. */
  readonly folder: string;
}

export interface AssembledImage extends ImageReference {
  readonly role: string;
  /** The layout of the image, with all its platforms. */
  readonly layout: string;
  readonly platforms: readonly AssembledPlatform[];
}

interface AssembledPlatform {
  readonly name: string;
  readonly digest: string;
  readonly spdx: string;
  readonly cyclonedx: string;
}

export interface AssembledRelease {
  readonly images: readonly AssembledImage[];
  readonly charts: readonly string[];
  /** The files for users, without layouts. `SHA256SUMS` lists their checksums. */
  readonly checksums: string;
}

/**
 * Requires that a folder, which is about to be replaced, contains none of these paths.
 * @throws UsageError
 */
export function requireOutside(folder: string, paths: readonly string[]): void {
  for (const path of paths) {
    const inner = relative(folder, path);
    if (inner.split(sep)[0] === ".." || isAbsolute(inner)) continue;
    throw new UsageError(`${folder} would be replaced, but it contains ${path}; set --out to another folder`);
  }
}

/**
 * Requires that all images were built from the commit and the version of the release, which the labels of the
 * release and its provenance name.
 * @throws UsageError
 */
export function requireSameSources(builds: readonly string[], { labels }: ImageDetails): void {
  for (const build of builds) {
    for (const role of rolesOf([build])) {
      const built = labelsIn(join(build, "images", role));
      for (const [label, value] of Object.entries(labels)) {
        if (built[label] === value) continue;
        throw new UsageError(
          `the image of the ${role} in ${build} has the label ${label}=${built[label]}, and the release has ${value}. Build the images of this commit again`,
        );
      }
    }
  }
}

/**
 * Assembles a release.
 * @param builds folders that `release images` wrote, one for each architecture
 */
export async function assembleRelease(
  programs: Programs,
  plan: ReleasePlan,
  builds: readonly string[],
): Promise<AssembledRelease> {
  const files = join(plan.folder, "files");
  requireOutside(plan.folder, [plan.sources, ...builds]);
  rmSync(plan.folder, { recursive: true, force: true });
  mkdirSync(files, { recursive: true });
  const images: AssembledImage[] = [];
  for (const role of rolesOf(builds)) images.push(await assembleImage(programs, plan, builds, role));
  const release: ChartRelease = {
    version: plan.version,
    epochSeconds: plan.details.epochSeconds,
    images: { server: imageOf(images, "server"), operator: imageOf(images, "operator") },
  };
  const charts: string[] = [];
  for (const chart of CHARTS) {
    charts.push(await packageChart(programs, join(plan.sources, "charts"), chart, files, release));
  }
  writeFileSync(join(files, "crds.yaml"), definitionsOf(plan.sources));
  cpSync(join(plan.sources, "LICENSE"), join(files, "LICENSE"));
  return { images, charts, checksums: writeChecksums(files) };
}

/** Returns the roles of the builds: each folder `images/ROLE` is a layout. */
function rolesOf(builds: readonly string[]): string[] {
  const roles = builds.flatMap((build) => globSync("images/*/index.json", { cwd: build }));
  return [...new Set(roles.map((path) => path.split("/")[1] ?? ""))].toSorted();
}

/** Merges the layouts of a role, and writes the bills of materials of each platform. */
async function assembleImage(
  programs: Programs,
  plan: ReleasePlan,
  builds: readonly string[],
  role: string,
): Promise<AssembledImage> {
  const layout = join(plan.folder, "images", role);
  mkdirSync(layout, { recursive: true });
  const manifests: Descriptor[] = [];
  const platforms: AssembledPlatform[] = [];
  for (const build of builds) {
    const from = join(build, "images", role);
    if (!existsSync(from)) continue;
    cpSync(join(from, "blobs"), join(layout, "blobs"), { recursive: true });
    manifests.push(...imagesOf(from));
    for (const image of imagesOf(from)) platforms.push(await describe(programs, plan, role, from, image));
  }
  const digest = writeIndex(layout, manifests, plan.details);
  return { role, layout, digest, repository: `${plan.registry}/${role}`, platforms };
}

/** Writes the bills of materials of one image as SPDX and as CycloneDX. */
async function describe(
  programs: Programs,
  plan: ReleasePlan,
  role: string,
  layout: string,
  image: Descriptor,
): Promise<AssembledPlatform> {
  const name = `${image.platform?.os}-${image.platform?.architecture}`;
  const stem = join(plan.folder, "files", `${role}-${plan.version}-${name}`);
  const [spdx, cyclonedx] = [`${stem}.spdx.json`, `${stem}.cdx.json`];
  await programs.run("syft", [
    ...["scan", `oci-dir:${layout}`, "--source-name", role, "--source-version", plan.version],
    ...["--output", `spdx-json=${spdx}`, "--output", `cyclonedx-json=${cyclonedx}`, "--quiet"],
  ]);
  return { name, digest: image.digest, spdx, cyclonedx };
}

function imageOf(images: readonly AssembledImage[], role: string): ImageReference {
  const image = images.find((candidate) => candidate.role === role);
  if (image === undefined) throw new Error(`the builds contain no image of the ${role}`);
  return { repository: image.repository, digest: image.digest };
}

/** Returns all CRDs as one file for `kubectl apply --server-side -f`. */
function definitionsOf(sources: string): string {
  const files = globSync("crds/*.yaml", { cwd: sources }).toSorted();
  return files.map((path) => `---\n${readFileSync(join(sources, path), "utf8").trimEnd()}\n`).join("");
}

/** Writes the checksums of all files of a folder in the format of sha256sum. Returns the path. */
function writeChecksums(folder: string): string {
  const path = join(folder, "SHA256SUMS");
  const lines = globSync("*", { cwd: folder })
    .toSorted()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex")}  ${name}\n`,
    );
  writeFileSync(path, lines.join(""));
  return path;
}
