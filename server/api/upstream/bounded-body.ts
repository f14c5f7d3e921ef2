/** Reads the response of another tier as text. The result is undefined if the response exceeds the limit. */
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
