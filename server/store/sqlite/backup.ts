import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** The time for which a copy waits for the lock of another process. */
const busyTimeoutMs = 10_000;

/**
 * Copies a consistent state of an SQLite file while other processes write. Only the owner can read the copy.
 * The copy gets its name after it was verified.
 * @throws Error if the file does not exist, the target exists, or the copy is incomplete.
 */
export function backUpSqlite(path: string, to: string): void {
  if (!existsSync(path)) throw new Error(`${path} does not exist. Check the path of the database.`);
  if (existsSync(to)) throw new Error(`${to} already exists; move the file or choose another name.`);
  const part = `${to}.part`;
  rmSync(part, { force: true }); // An interrupted copy may have left a partial file.
  // The file is created first, because SQLite would create a file that every user can read.
  writeFileSync(part, "", { mode: 0o600, flag: "wx" });
  const source = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
  try {
    source.prepare("VACUUM INTO ?").run(part);
    check(part);
    renameSync(part, to);
  } finally {
    source.close();
    rmSync(part, { force: true });
  }
}

function check(path: string): void {
  const copy = new DatabaseSync(path, { readOnly: true });
  try {
    const result = copy.prepare("PRAGMA integrity_check").get()?.integrity_check;
    if (result !== "ok")
      throw new Error(
        `The copy ${path} is incomplete: ${result}. Repeat the command; if it fails again, check the disk.`,
      );
    // This statement fails for the file of another program.
    copy.prepare("SELECT count(*) FROM kysely_migration").get();
  } finally {
    copy.close();
  }
}
