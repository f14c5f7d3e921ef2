/** The part of a `FileHandle` that writes at its end. */
export interface Appendable {
  write(bytes: Uint8Array): Promise<{ readonly bytesWritten: number }>;
}

/**
 * Writes all bytes. One `write` may take fewer bytes than given, for example on an almost full disk, and
 * reports it only by its result.
 * @throws Error of the file system, or when it accepts no more bytes.
 */
export async function writeWhole(out: Appendable, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await out.write(bytes.subarray(written));
    if (bytesWritten === 0)
      throw Object.assign(new Error("the file system takes no more bytes"), { code: "ENOSPC" });
    written += bytesWritten;
  }
}
