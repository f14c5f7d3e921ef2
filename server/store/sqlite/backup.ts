import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** How long a copy waits for another process. */
const busyTimeoutMs = 10_000;

/**
 * A copy of an SQLite file as it is at one moment, whoever writes meanwhile; readable by its owner alone, and looked through before it is
 * there by its name.
 * @throws Error when there is nothing to copy, something is in the way, or the copy is not whole.
 */
export function backUpSqlite(path: string, to: string): void {
  if (!existsSync(path)) throw new Error(`${path} is not there.`);
  if (existsSync(to)) throw new Error(`${to} is there already; move it away or choose another name.`);
  const part = `${to}.part`;
  rmSync(part, { force: true }); // of one that was cut off
  writeFileSync(part, "", { mode: 0o600, flag: "wx" }); // SQLite writes into an empty file, and would make one for everybody
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
    if (said !== "ok") throw new Error(`The copy is not whole: ${said}.`);
    copy.prepare("SELECT count(*) FROM kysely_migration").get(); // another program's file has none
  } finally {
    copy.close();
  }
}
