/**
 * Resolves to `undefined` if `reading` fails because the file does not exist (`ENOENT`). Rejects with every
 * other error.
 */
export async function readIfExists<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
