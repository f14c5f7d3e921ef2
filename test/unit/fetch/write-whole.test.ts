import { describe, expect, it } from "vitest";
import { writeWhole } from "../../../server/fetch/download.ts";

/** A file that accepts at most this many bytes per call. The last entry applies to all further calls. */
function shortWriter(...most: number[]) {
  const taken: number[] = [];
  return {
    taken,
    write: async (bytes: Uint8Array) => {
      const limit = (most.length > 1 ? most.shift() : most[0]) ?? 0;
      taken.push(...bytes.subarray(0, limit));
      return { bytesWritten: Math.min(limit, bytes.length) };
    },
  };
}

const bytes = Uint8Array.from({ length: 100 }, (_, index) => index);

describe("a complete write", () => {
  it.each([[[100]], [[1]], [[7, 50, 3]], [[99, 1]]])(
    "is made of partial writes of %j bytes",
    async (most) => {
      const out = shortWriter(...most);
      await writeWhole(out, bytes);
      expect(out.taken).toEqual([...bytes]);
    },
  );

  it("fails as on a full disk if no more bytes are accepted", async () => {
    await expect(writeWhole(shortWriter(40, 0), bytes)).rejects.toMatchObject({ code: "ENOSPC" });
  });
});
