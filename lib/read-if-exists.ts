/** Resolves to `undefined` when the file does not exist (`ENOENT`). Every other error is thrown. */
export async function readIfExists<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
