import { env as names } from "../../config/contract/names.ts";
import type { Command } from "../../lib/command-line.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { isPostgresUrl, shownPlace } from "../store/database/database.ts";
import { backUpSqlite } from "../store/sqlite/backup.ts";

export const backupCommand: Command = {
  name: "backup",
  summary: "back up the SQLite file of keys, users and words while servers use it",
  options: {
    to: { value: "PATH", help: "path of the copy, which must not exist", required: true },
    database: { value: "PATH", help: `the SQLite file; default: the value of ${names.database}` },
  },
  notes: "Back up PostgreSQL with pg_dump. docs/how-to/back-up.md explains how to restore a copy.",
  async run(shell, { to = "", database = shell.env[names.database] || undefined }) {
    if (database === undefined)
      throw new UsageError(`Set --database PATH or ${names.database} to the database to copy.`);
    if (isPostgresUrl(database)) {
      throw new UsageError(`${shownPlace(database)} is a PostgreSQL database; back it up with pg_dump.`);
    }
    try {
      backUpSqlite(database, to);
    } catch (cause) {
      throw new UsageError(`${database} was not copied: ${(cause as Error).message}`, { cause });
    }
    shell.complain(`${to} is a verified copy of ${database}.`);
    return 0;
  },
};
