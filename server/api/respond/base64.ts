/** Bytes that are encoded at once. A multiple of three, so that the texts can be joined. */
const stepBytes = 3 * 16 * 1024;

/** Length of the base64 text of this many bytes. */
export function base64Length(bytes: number): number {
  return 4 * Math.ceil(bytes / 3);
}

/** Encodes all parts as one base64 text, piece by piece. */
export function* base64Of(parts: Iterable<Uint8Array>): Generator<string, void, void> {
  let rest: Buffer = Buffer.alloc(0); // Fewer than three bytes remain.
  for (const part of parts) {
    const missing = (3 - rest.length) % 3;
    const first = Buffer.concat([rest, part.subarray(0, missing)]);
    if (first.length === 3) yield first.toString("base64");
    const whole = Buffer.from(part.buffer, part.byteOffset, part.length).subarray(missing);
    const end = whole.length - (whole.length % 3);
    for (let at = 0; at < end; at += stepBytes) {
      yield whole.toString("base64", at, Math.min(end, at + stepBytes));
    }
    rest = first.length === 3 || missing === 0 ? whole.subarray(end) : first;
  }
  if (rest.length > 0) yield rest.toString("base64");
}
