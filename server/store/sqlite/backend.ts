import type { Backend, DatabaseFault } from "../backend/backend.ts";
import { workerSqliteDialect } from "./dialect.ts";

/** What SQLite's result codes (sqlite.org/rescode.html) mean to whoever runs the service. */
const meanings: Readonly<Record<number, string>> = {
  5: "is locked by another process; it is tried again. Nothing but svc-tts should hold it open",
  8: "is read-only; give the server's user the right to write the file and its folder",
  10: "cannot be read or written: an input/output error. Look at the disk",
  11: "is corrupt; stop the server and put a backup in its place",
  13: "cannot be written as the disk is full; free some space",
  14: "cannot be opened; its folder must be there, and the server's user may write in it",
  26: "is not an SQLite database; put a backup in its place, or name another file",
};

const systemMeanings: Readonly<Record<string, string>> = {
  ENOENT: "is not there, nor is its folder perhaps; put it back, or mount the volume that holds it",
  EACCES:
    "may not be opened by the server's user; give it the right to read and write the file and its folder",
  EROFS: "lies on a read-only file system; mount its volume for writing",
  EISDIR: "is a folder; name a file",
  ENOSPC: "cannot be written as the disk is full; free some space",
};

/** @param path of the file, made when it is not there, or `:memory:`. */
export function sqliteBackend(path: string): Backend {
  return {
    dialect: workerSqliteDialect(path),
    name: path,
    lockMigrations: async () => undefined, // each transaction holds the file's lock from its beginning
    meaningOf: ({ sqliteCode = 0, code = "" }: DatabaseFault) => meanings[sqliteCode] ?? systemMeanings[code],
  };
}
