/** Tests that an image layout depends only on the files of the image and on the details of the release. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { addImage, digestOf, imagesOf, writeIndex } from "../../../tools/release/image-layout.ts";
import { tarPaths } from "../../../tools/release/tar.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("layout");
const details = { epochSeconds: 1_700_000_000, labels: { "org.opencontainers.image.version": "1.2.3" } };

const digit = (time: number) => String(time).slice(1, 2);

/** Writes an unpacked docker-archive with one layer, as an engine does at the given time. */
function archive(time: number, architecture: string): string {
  const root = mkdtempSync(join(folder, "archive-"));
  mkdirSync(join(root, "files"));
  writeFileSync(join(root, "files/program"), "program");
  utimesSync(join(root, "files/program"), time, time);
  mkdirSync(join(root, "files/app/.compile-cache"), { recursive: true });
  writeFileSync(join(root, "files/app/.compile-cache/hash"), String(time));
  execFileSync("tar", [
    "--create",
    "--file",
    join(root, "layer.tar"),
    "-C",
    join(root, "files"),
    "program",
    "app",
  ]);
  const created = new Date(time * 1000).toISOString();
  const config = {
    ...{ architecture, os: "linux", created, container: String(time) },
    config: { User: "65532:65532", Labels: { own: "label" } },
    history: [
      { created, created_by: `COPY file:${digit(time).repeat(64)} in /program`, comment: `FROM ${time}` },
    ],
    rootfs: { type: "layers", diff_ids: ["sha256:of-the-engine"] },
  };
  writeFileSync(join(root, "config.json"), JSON.stringify(config));
  writeFileSync(
    join(root, "manifest.json"),
    JSON.stringify([{ Config: "config.json", Layers: ["layer.tar"] }]),
  );
  return root;
}

const layout = () => mkdtempSync(join(folder, "layout-"));

function blob<T>(root: string, digest: string): T {
  return JSON.parse(readFileSync(join(root, "blobs", digest.replace(":", "/")), "utf8")) as T;
}

it("two builds at different times have one digest", () => {
  const [first, second] = [layout(), layout()];
  const digest = writeIndex(first, [addImage(first, archive(1_800_000_000, "amd64"), details)], details);
  const again = writeIndex(second, [addImage(second, archive(1_900_000_000, "amd64"), details)], details);
  expect(again).toBe(digest);
  expect(digest).toBe(digestOf(readFileSync(join(first, "index.json"))));
});

it("the configuration has the time and the labels of the release, and the digests of the new layers", () => {
  const root = layout();
  const manifest = addImage(root, archive(1_800_000_000, "amd64"), details);
  const { config } = blob<{ config: { digest: string } }>(root, manifest.digest);
  const created = "2023-11-14T22:13:20Z";
  expect(blob(root, config.digest)).toEqual({
    ...{ architecture: "amd64", os: "linux", created },
    config: { User: "65532:65532", Labels: { own: "label", ...details.labels } },
    history: [{ created, created_by: "COPY file in /program" }],
    rootfs: { type: "layers", diff_ids: [expect.stringMatching(/^sha256:[0-9a-f]{64}$/)] },
  });
});

it("a layer contains the folder of the compile cache without files, which differ between builds", () => {
  const root = layout();
  const manifest = addImage(root, archive(1_800_000_000, "amd64"), details);
  const [layer] = blob<{ layers: { digest: string }[] }>(root, manifest.digest).layers;
  const bytes = readFileSync(join(root, "blobs", layer?.digest.replace(":", "/") ?? ""));
  expect(tarPaths(gunzipSync(bytes))).toEqual(["app/", "app/.compile-cache/", "program"]);
});

it("the index has one image for each architecture, in any order of the builds", () => {
  const root = layout();
  const [arm, amd] = ["arm64", "amd64"].map((name) => addImage(root, archive(1_800_000_000, name), details));
  if (arm === undefined || amd === undefined) throw new Error("an image is missing");
  const digest = writeIndex(root, [arm, amd], details);
  expect(writeIndex(root, [amd, arm], details)).toBe(digest);
  expect(imagesOf(root).map(({ platform }) => platform?.architecture)).toEqual(["amd64", "arm64"]);
});
