import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { tarball } from "../../../../operator/cli/bundle-command.ts";

it("tarball creates an archive that tar unpacks, with files of any length, long names and umlauts", async () => {
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-tar-"));
  const files = [
    { path: "a/empty", content: "" },
    { path: "a/block", content: "x".repeat(512) },
    { path: "a/more", content: "größer\n".repeat(100) },
    { path: `a/${"b".repeat(80)}/${"c".repeat(90)}`, content: "long" },
    { path: `a/${"d".repeat(200)}`, content: "longer than a field of the header" },
  ];
  await writeFile(join(folder, "x.tar.gz"), await tarball(files, 1_700_000_000_000));
  await promisify(execFile)("tar", ["-xzf", "x.tar.gz"], { cwd: folder });
  for (const { path, content } of files) expect(await readFile(join(folder, path), "utf8")).toBe(content);
  const { mode, mtimeMs } = await stat(join(folder, "a/more"));
  expect(mode & 0o777).toBe(0o600);
  expect(mtimeMs).toBe(1_700_000_000_000);
  await rm(folder, { recursive: true });
});
