/** A server-sent event (HTML, section 9.2). */
export interface HeardEvent {
  readonly name: string;
  readonly data: unknown;
}

export function parseEvents(text: string): HeardEvent[] {
  return text
    .split("\n\n")
    .map((block) => block.split("\n").filter((line) => line !== "" && !line.startsWith(":")))
    .filter((lines) => lines.length > 0)
    .map((lines) => {
      const field = (name: string) =>
        lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
      return { name: field("event").join(""), data: JSON.parse(field("data").join("\n")) };
    });
}

/** Decodes the base64 data of each chunk, and returns the concatenation. */
export function joinChunks(events: readonly HeardEvent[], chunk = "chunk", field = "data"): Buffer {
  const pieces = events
    .filter(({ name }) => name === chunk)
    .map(({ data }) => (data as Record<string, string>)[field] ?? "");
  return Buffer.concat(
    pieces.map((piece) => {
      if (!/^[A-Za-z0-9+/]*={0,2}$/.test(piece) || piece.length % 4 !== 0) {
        throw new Error("a chunk is not valid base64");
      }
      return Buffer.from(piece, "base64");
    }),
  );
}
