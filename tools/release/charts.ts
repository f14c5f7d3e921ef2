/**
 * Packages the Helm charts of a release. The packages name the images by digest, so an installation needs no
 * values for images.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { parseDocument } from "yaml";
import type { Programs } from "./programs.ts";
import { normalizeTar } from "./tar.ts";

/** The repository and the digest of an image. */
export interface ImageReference {
  readonly repository: string;
  readonly digest: string;
}

export interface ChartRelease {
  readonly version: string;
  readonly epochSeconds: number;
  readonly images: Readonly<Record<"server" | "operator", ImageReference>>;
}

export const CHARTS = ["tts-operator", "tts-deployment"] as const;
export type ChartName = (typeof CHARTS)[number];

/** The values of each chart that name an image of the release. */
const imageValues: Readonly<Record<ChartName, Readonly<Record<string, "server" | "operator">>>> = {
  "tts-operator": { "images.server": "server", "images.operator": "operator" },
  "tts-deployment": { "test.image": "server" },
};

/** Returns the values of a chart with the repositories and digests of the release. Comments remain. */
export function releaseValues(chart: ChartName, values: string, release: ChartRelease): string {
  const document = parseDocument(values);
  for (const [path, image] of Object.entries(imageValues[chart])) {
    const keys = path.split(".");
    for (const [field, value] of Object.entries(release.images[image])) {
      if (!document.hasIn([...keys, field]))
        throw new Error(`values.yaml of ${chart} has no ${path}.${field}`);
      document.setIn([...keys, field], value);
    }
  }
  return document.toString({ lineWidth: 0 });
}

/** Returns Chart.yaml with the version of the release, and with the images that it contains. */
export function releaseMetadata(metadata: string, release: ChartRelease): string {
  const document = parseDocument(metadata);
  document.set("version", release.version);
  document.set("appVersion", release.version);
  let images = String(document.getIn(["annotations", "artifacthub.io/images"]));
  for (const [name, { repository, digest }] of Object.entries(release.images)) {
    images = images.replace(new RegExp(`image: \\S+/${name}:\\S+`), `image: ${repository}@${digest}`);
  }
  document.setIn(["annotations", "artifacthub.io/images"], images);
  return document.toString({ lineWidth: 0 });
}

/**
 * Packages a chart into `folder`. The same chart gives the same bytes.
 * @returns the path of the package
 */
export async function packageChart(
  programs: Programs,
  charts: string,
  chart: ChartName,
  folder: string,
  release: ChartRelease,
): Promise<string> {
  const staging = join(folder, "staging", chart);
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging, { recursive: true });
  cpSync(join(charts, chart), staging, { recursive: true });
  const edit = (file: string, change: (text: string) => string) =>
    writeFileSync(join(staging, file), change(readFileSync(join(staging, file), "utf8")));
  edit("values.yaml", (text) => releaseValues(chart, text, release));
  edit("Chart.yaml", (text) => releaseMetadata(text, release));
  await programs.run("helm", ["package", staging, "--destination", folder]);
  rmSync(join(folder, "staging"), { recursive: true });
  const path = join(folder, `${chart}-${release.version}.tgz`);
  writeFileSync(path, gzipSync(normalizeTar(gunzipSync(readFileSync(path)), release.epochSeconds)));
  // `helm push` writes the time of the file into the manifest.
  utimesSync(path, release.epochSeconds, release.epochSeconds);
  return path;
}
