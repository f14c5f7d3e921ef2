import { describe, expect, it } from "vitest";
import { writeWhole } from "../../../server/fetch/download.ts";

/**
 * Simulates a file that accepts a limited number of bytes in each call.
 *
 * @param most the limit of each call. The last limit applies to all further calls.
 */
function shortWriter(...most: number[]) {
  const written: number[] = [];
  return {
    written,
    write: async (bytes: Uint8Array) => {
      const limit = (most.length > 1 ? most.shift() : most[0]) ?? 0;
      written.push(...bytes.subarray(0, limit));
      return { bytesWritten: Math.min(limit, bytes.length) };
    },
  };
}

const bytes = Uint8Array.from({ length: 100 }, (_, index) => index);

describe("writeWhole", () => {
  it.each([[[100]], [[1]], [[7, 50, 3]], [[99, 1]]])(
    "writes all bytes if calls write at most %j bytes",
    async (most) => {
      const out = shortWriter(...most);
      await writeWhole(out, bytes);
      expect(out.written).toEqual([...bytes]);
    },
  );

  it("fails with ENOSPC if a call writes no bytes", async () => {
    await expect(writeWhole(shortWriter(40, 0), bytes)).rejects.toMatchObject({ code: "ENOSPC" });
  });
});
