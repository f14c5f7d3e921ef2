/** What another tier answered, as text; undefined where it is longer than any honest answer. */
export async function readBounded(
  body: AsyncIterable<Buffer>,
  limitBytes: number,
): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > limitBytes) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
