/** What is read of a file, or `undefined` where there is none; every other failure, as of a disk or of rights, is the caller's. */
export async function readIfExists<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
