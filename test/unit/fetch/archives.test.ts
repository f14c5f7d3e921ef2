import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import { packTar } from "modern-tar";
import { describe, expect, test } from "vitest";
import { zipEntry } from "../../../server/fetch/zip.ts";
import { tarEntries } from "../../../server/presets/sources.ts";

const text = Buffer.from("all of it, and more of it, and more of it again".repeat(20));

/** Returns a zip archive of one file, in the format of PKWARE's APPNOTE 6.3. */
function zip(name: string, content: Buffer, method: "stored" | "deflated", crc = crc32(content)): Buffer {
  const packed = method === "stored" ? content : deflateRawSync(content);
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(method === "stored" ? 0 : 8, 4);
  common.writeUInt32LE(crc, 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(content.length, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, Buffer.from(name), packed]);
  const central = Buffer.concat([
    Buffer.from("PK\x01\x02\x14\x00"),
    common,
    Buffer.alloc(14),
    Buffer.from(name),
  ]);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", 0, "latin1");
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, central, end]);
}

describe("a zip archive", () => {
  test.each(["stored", "deflated"] as const)("returns its file if it is %s", (method) => {
    expect(zipEntry(zip("a/part.bin", text, method), "a/part.bin").equals(text)).toBe(true);
  });

  test.each<[string, Buffer, RegExp]>([
    ["without the file", zip("other", text, "stored"), /has no file a\/part\.bin/],
    ["with a wrong checksum", zip("a/part.bin", text, "deflated", 7), /a\/part\.bin is damaged/],
    ["that is truncated", zip("a/part.bin", text, "deflated").subarray(0, 60), /is not a zip archive/],
    ["that is an HTML page", Buffer.from("<html>not found</html>"), /is not a zip archive/],
    ["with a wrong directory offset", withWrongOffset(), /is damaged/],
  ])("%s is refused", (_what, archive, message) => {
    expect(() => zipEntry(archive, "a/part.bin")).toThrow(message);
  });
});

function withWrongOffset(): Buffer {
  const archive = zip("a/part.bin", text, "stored");
  archive.writeUInt32LE(archive.length + 5, archive.length - 6);
  return archive;
}

/** Returns an uncompressed tar archive of these files. */
function tar(files: Readonly<Record<string, Buffer>>): Promise<Uint8Array> {
  return packTar(
    Object.entries(files).map(([name, body]) => ({ header: { name, size: body.length }, body })),
  );
}

describe("a tarball", () => {
  test("returns its regular files with their full names", async () => {
    const long = `package/${"voices/".repeat(20)}b.bin`;
    const archive = await packTar([
      { header: { name: "pax_global_header", type: "pax-global-header", size: 14 }, body: "14 comment=it\n" },
      { header: { name: "package/", type: "directory", size: 0 } },
      { header: { name: "package/a.bin", size: text.length }, body: text },
      { header: { name: long, size: 512 }, body: Buffer.alloc(512, 7) },
      { header: { name: "package/empty", size: 0 } },
      { header: { name: "package/link", type: "symlink", linkname: "a.bin", size: 0 } },
    ]);
    const found = await tarEntries(gzipSync(archive));
    expect([...found.keys()]).toEqual(["package/a.bin", long, "package/empty"]);
    expect(text.equals(found.get("package/a.bin") ?? new Uint8Array())).toBe(true);
    expect(found.get(long)).toHaveLength(512);
    expect(found.get("package/empty")).toHaveLength(0);
  });

  test.each<[string, Promise<Uint8Array>]>([
    ["is not compressed", tar({ a: text })],
    ["is truncated within a file", tar({ a: text }).then((whole) => gzipSync(whole.subarray(0, 600)))],
    ["is truncated between files", tar({ a: text }).then((whole) => gzipSync(whole.subarray(0, 1536)))],
    ["has a changed header", tar({ a: text }).then((whole) => gzipSync(whole.fill(98, 0, 1)))],
    ["has invalid sizes", Promise.resolve(gzipSync(Buffer.alloc(2048, "x")))],
  ])("is refused if it %s", async (_what, archive) => {
    await expect(tarEntries(Buffer.from(await archive))).rejects.toThrow("the tar archive is damaged");
  });
});
