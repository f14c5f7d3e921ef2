import type { Backend, DatabaseFault } from "../backend/backend.ts";
import { workerSqliteDialect } from "./dialect.ts";

/** The explanations of SQLite's result codes (sqlite.org/rescode.html) for the administrator. */
const meanings: Readonly<Record<number, string>> = {
  5: "is locked by another process; svc-tts retries. Close any other program that has the file open",
  8: "is read-only; allow the server's user to write the file and its folder",
  10: "cannot be read or written because of an input/output error; check the disk",
  11: "is corrupt; stop the server and restore a backup",
  13: "cannot be written because the disk is full; free some space",
  14: "cannot be opened; its folder must exist, and the server's user must be able to write in it",
  26: "is not an SQLite database; restore a backup, or set the path of another file",
};

const systemMeanings: Readonly<Record<string, string>> = {
  ENOENT: "is missing, or its folder is missing; restore the file, or mount its volume",
  EACCES: "cannot be opened by the server's user; allow the user to read and write the file and its folder",
  EROFS: "is on a read-only file system; mount its volume for writing",
  EISDIR: "is a folder; set the path of a file",
  ENOSPC: "cannot be written because the disk is full; free some space",
};

/**
 * Opens an SQLite file in a worker thread.
 * @param path the path of the file, which is created if it is missing, or `:memory:`.
 */
export function sqliteBackend(path: string): Backend {
  return {
    dialect: workerSqliteDialect(path),
    name: path,
    lockMigrations: async () => undefined, // Each transaction locks the file when it starts.
    meaningOf: ({ sqliteCode = 0, code = "" }: DatabaseFault) => meanings[sqliteCode] ?? systemMeanings[code],
  };
}
