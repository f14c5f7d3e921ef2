import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { tarEntries } from "../../../server/fetch/tar.ts";
import { zipEntry } from "../../../server/fetch/zip.ts";

const text = Buffer.from("all of it, and more of it, and more of it again".repeat(20));

/** A zip archive of one file, as PKWARE's APPNOTE 6.3 has it. */
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
  test.each(["stored", "deflated"] as const)("gives its file where it is %s", (method) => {
    expect(zipEntry(zip("a/part.bin", text, method), "a/part.bin").equals(text)).toBe(true);
  });

  test.each<[string, Buffer, RegExp]>([
    ["without the file", zip("other", text, "stored"), /has no file a\/part\.bin/],
    ["whose file is spoilt", zip("a/part.bin", text, "deflated", 7), /a\/part\.bin is broken/],
    ["that is cut", zip("a/part.bin", text, "deflated").subarray(0, 60), /is no zip archive/],
    ["that is a page of a web server", Buffer.from("<html>not found</html>"), /is no zip archive/],
    ["whose directory is elsewhere", misplaced(), /is broken/],
  ])("%s is told so", (_what, archive, says) => {
    expect(() => zipEntry(archive, "a/part.bin")).toThrow(says);
  });
});

function misplaced(): Buffer {
  const archive = zip("a/part.bin", text, "stored");
  archive.writeUInt32LE(archive.length + 5, archive.length - 6);
  return archive;
}

interface TarFile {
  readonly name: string;
  readonly content: Buffer;
  readonly type?: string;
  readonly prefix?: string;
}

/** As POSIX.1-1988 has it; the checksum is not looked at. */
function tar(files: readonly TarFile[]): Buffer {
  const blocks = files.map(({ name, content, type = "0", prefix = "" }) => {
    const head = Buffer.alloc(512);
    head.write(name, 0);
    head.write(content.length.toString(8).padStart(11, "0"), 124);
    head.write(type, 156);
    head.write("ustar", 257);
    head.write(prefix, 345);
    return Buffer.concat([head, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

describe("a tarball", () => {
  test("gives its files by their whole names, and nothing else", () => {
    const files = [
      { name: "pax_global_header", content: Buffer.from("52 comment=…"), type: "g" },
      { name: "package/a.bin", content: text },
      { name: "b.bin", content: Buffer.alloc(512, 7), prefix: "package/voices" },
      { name: "package/empty", content: Buffer.alloc(0) },
      { name: "package/link", content: Buffer.alloc(0), type: "2" },
    ];
    const found = tarEntries(gzipSync(tar(files)));
    expect([...found.keys()]).toEqual(["package/a.bin", "package/voices/b.bin", "package/empty"]);
    expect(found.get("package/a.bin")?.equals(text)).toBe(true);
    expect(found.get("package/voices/b.bin")).toHaveLength(512);
  });

  test.each<[string, Buffer]>([
    ["is not compressed", tar([{ name: "a", content: text }])],
    ["is cut", gzipSync(tar([{ name: "a", content: text }]).subarray(0, 600))],
    ["has no sizes", gzipSync(Buffer.alloc(2048, "x"))],
  ])("that %s is told so", (_what, archive) => {
    expect(() => tarEntries(archive)).toThrow("the archive is broken");
  });
});
