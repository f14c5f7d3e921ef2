import { env as names } from "../../config/contract/names.ts";
import type { Command } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { isPostgresUrl, shownPlace } from "../store/database/database.ts";
import { backUpSqlite } from "../store/sqlite/backup.ts";

export const backupCommand: Command = {
  name: "backup",
  summary: "copy the SQLite file of keys, users and words while servers use it",
  options: {
    to: { value: "PATH", help: "the copy, which must not exist yet", required: true },
    database: { value: "PATH", help: `the file; default: the value of ${names.database}` },
  },
  notes: "PostgreSQL is copied by pg_dump. How to put a copy back: docs/how-to/back-up.md.",
  async run(shell, { to = "", database = shell.env[names.database] || undefined }) {
    if (database === undefined) throw new UsageError("Name the database to copy: --database PATH.");
    if (isPostgresUrl(database)) {
      throw new UsageError(`${shownPlace(database)} is a PostgreSQL database; back it up with pg_dump.`);
    }
    try {
      backUpSqlite(database, to);
    } catch (cause) {
      throw new UsageError(`${database} was not copied: ${(cause as Error).message}`, { cause });
    }
    shell.complain(`${to} is a copy of ${database}, and was looked through.`);
    return 0;
  },
};
