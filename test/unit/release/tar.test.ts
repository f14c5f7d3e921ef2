/** Tests the normal form of tar archives with archives that GNU tar writes. */
import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { normalizeTar, tarPaths } from "../../../tools/release/tar.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("tar");
const epochSeconds = 1_700_000_000;
const longName = `${"folder/".repeat(20)}${"name".repeat(30)}`;

/** Creates the same files in a new folder, with the given time. */
function files(time: number): string {
  const root = mkdtempSync(join(folder, "files-"));
  mkdirSync(join(root, longName, ".."), { recursive: true });
  writeFileSync(join(root, longName), "long");
  writeFileSync(join(root, "b"), "b".repeat(700));
  linkSync(join(root, "b"), join(root, "a-hard-link"));
  symlinkSync("b", join(root, "symbolic"));
  writeFileSync(join(root, ".wh.removed"), "");
  for (const name of ["b", ".wh.removed", longName]) utimesSync(join(root, name), time, time);
  return root;
}

function archive(root: string, format: string, names: readonly string[]): Buffer {
  return execFileSync("tar", ["--create", `--format=${format}`, "-C", root, ...names], {
    maxBuffer: 1024 * 1024,
  });
}

describe.each(["pax", "gnu"])("an archive in the format %s", (format) => {
  it("has the same bytes for the same files in another order and with other times", () => {
    const names = ["b", "folder", "symbolic", ".wh.removed"];
    const one = archive(files(1_800_000_000), format, names);
    const other = archive(files(1_600_000_000.25), format, names.toReversed());
    expect(one.equals(other)).toBe(false);
    expect(normalizeTar(one, epochSeconds).equals(normalizeTar(other, epochSeconds))).toBe(true);
    expect(tarPaths(normalizeTar(one, epochSeconds))).toContain(longName);
  });

  it("is unpacked to the same files, with the time of the release", () => {
    const root = files(1_800_000_000);
    const names = readdirSync(root).toSorted();
    const target = mkdtempSync(join(folder, "unpacked-"));
    execFileSync("tar", ["--extract", "-C", target], {
      input: normalizeTar(archive(root, format, names), epochSeconds),
    });
    expect(readdirSync(target).toSorted()).toEqual(names);
    expect(readFileSync(join(target, "b"), "utf8")).toBe("b".repeat(700));
    expect(readFileSync(join(target, longName), "utf8")).toBe("long");
    expect(readlinkSync(join(target, "symbolic"))).toBe("b");
    expect(statSync(join(target, "b")).ino).toBe(statSync(join(target, "a-hard-link")).ino);
    expect(statSync(join(target, "b")).mtimeMs).toBe(epochSeconds * 1000);
  });
});

it("rejects a file that is too large for the format", () => {
  const body = Buffer.alloc(512);
  body.write("20 size=99999999999\n");
  const header = Buffer.alloc(512);
  header.write("PaxHeaders");
  header.write("00000000024\0", 124);
  header.write("x", 156);
  header.write("ustar", 257);
  expect(() => normalizeTar(Buffer.concat([header, body]), epochSeconds)).toThrow("larger than 8 GiB");
});

it("rejects a file that is not a tar archive", () => {
  expect(() => normalizeTar(Buffer.alloc(512, "compressed"), epochSeconds)).toThrow("not a tar archive");
});
