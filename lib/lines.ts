/** The error for a line that is longer than the limit of the reader. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";
}

/**
 * Yields the complete lines of a byte stream. Text after the last newline is left out, because the line is
 * incomplete.
 */
export async function* linesOf(stream: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      pieces.push(chunk.subarray(start, end));
      start = end + 1;
      const line = Buffer.concat(pieces).toString("utf8");
      pieces = [];
      bytes = 0;
      if (line.trim() !== "") yield line;
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start));
    bytes += chunk.length - start;
    if (bytes > maxBytes) throw new LineTooLong(`a line is longer than ${maxBytes} bytes`);
  }
}
