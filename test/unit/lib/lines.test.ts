import { describe, expect, test } from "vitest";
import { LineTooLong, linesOf } from "../../../lib/lines.ts";

async function* pieces(...texts: (string | Uint8Array)[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text as string);
}

async function read(stream: AsyncIterable<Buffer>, maxBytes = 1_000): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(stream, maxBytes)) lines.push(line);
  return lines;
}

describe("the lines of a stream", () => {
  test("are complete for any division into pieces, also within a character", async () => {
    const bytes = Buffer.from("eins\nzwölf\n");
    const each = [...bytes].map((byte) => Uint8Array.of(byte));
    expect(await read(pieces(...each))).toEqual(["eins", "zwölf"]);
    expect(await read(pieces("a\nb", "\nc\n\n", "d\n"))).toEqual(["a", "b", "c", "d"]);
  });

  test("omit an incomplete last line", async () => {
    expect(await read(pieces('{"a":1}\n{"a"'))).toEqual(['{"a":1}']);
  });

  test("fail if a line is longer than the limit", async () => {
    await expect(read(pieces("x".repeat(600), "x".repeat(600)))).rejects.toThrow(LineTooLong);
    expect(await read(pieces(`${"x".repeat(600)}\n`, `${"y".repeat(600)}\n`))).toHaveLength(2);
  });
});
