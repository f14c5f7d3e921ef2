import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** How long a copy waits for another process. */
const busyTimeoutMs = 10_000;

/**
 * Copies an SQLite file as of one moment, while other processes write. Only the owner can read the copy, and
 * it gets its name after it was verified.
 * @throws Error if there is nothing to copy, the target exists, or the copy is incomplete.
 */
export function backUpSqlite(path: string, to: string): void {
  if (!existsSync(path)) throw new Error(`${path} does not exist.`);
  if (existsSync(to)) throw new Error(`${to} already exists; move it away or choose another name.`);
  const part = `${to}.part`;
  rmSync(part, { force: true }); // Removes the remains of an interrupted copy.
  writeFileSync(part, "", { mode: 0o600, flag: "wx" }); // SQLite would create a file that every user can read, so an empty file is created first.
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
    const said = copy.prepare("PRAGMA integrity_check").get()?.integrity_check;
    if (said !== "ok") throw new Error(`The copy is incomplete: ${said}.`);
    copy.prepare("SELECT count(*) FROM kysely_migration").get(); // A file of another program has no such table.
  } finally {
    copy.close();
  }
}
