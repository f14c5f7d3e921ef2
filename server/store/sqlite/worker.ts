/**
 * The worker thread of an SQLite file. A slow disk or another process's lock blocks only this thread, and
 * does not interrupt streams. The thread opens the file at the first statement, and again after an error. The
 * thread then uses a file that was repaired or restored.
 */
import { closeSync, openSync, statSync } from "node:fs";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Answer, Statement } from "./protocol.ts";

const { path } = workerData as { readonly path: string };
const inMemory = path === ":memory:";
/** The time for which a statement waits for the lock of another process. */
const busyTimeoutMs = 2_000;
/** The result codes after which the handle is unusable: I/O error, corrupt, cannot open, not a database. */
const fatalCodes = new Set([10, 11, 14, 26]);

let database: DatabaseSync | undefined;
let inode: bigint | undefined;

function execute({
  sql,
  parameters,
}: Statement): Pick<Extract<Answer, { rows: unknown }>, "rows" | "changes"> {
  const statement = openedDatabase().prepare(sql);
  const values = parameters as SQLInputValue[];
  if (statement.columns().length > 0) return { rows: statement.all(...values), changes: 0 };
  return { rows: [], changes: Number(statement.run(...values).changes) };
}

function openedDatabase(): DatabaseSync {
  if (database && !inMemory) checkSameFile(database);
  database ??= open();
  return database;
}

/**
 * Checks that the path still leads to the opened file. Writes to a deleted file would succeed and be lost.
 */
function checkSameFile(current: DatabaseSync): void {
  const now = statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
  if (now === inode) return;
  current.close();
  database = undefined;
  const what = now === undefined ? "was deleted" : "was replaced by another file";
  if (now !== undefined) inode = undefined;
  throw Object.assign(new Error(`the file ${what}`), { isReplaced: true });
}

function open(): DatabaseSync {
  if (!inMemory) {
    // A file that existed before is not created again, because an empty file would hide the loss of its keys.
    const flags = inode === undefined ? "a" : "r+";
    closeSync(openSync(path, flags, 0o600));
    inode = statSync(path, { bigint: true }).ino;
  }
  const connection = new DatabaseSync(path, { timeout: busyTimeoutMs });
  try {
    // In WAL mode, readers and a writer do not wait for each other. A power failure may lose the last
    // changes, but does not damage the file.
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function respond(statement: Statement): Answer {
  const { id } = statement;
  try {
    return { id, ...execute(statement) };
  } catch (error) {
    const { errcode, code, message, isReplaced = false } = error as Partial<Record<string, unknown>>;
    const sqliteCode = typeof errcode === "number" ? errcode & 0xff : undefined;
    if (sqliteCode !== undefined && fatalCodes.has(sqliteCode) && database) {
      database.close();
      database = undefined;
    }
    return {
      id,
      failure: {
        message: String(message),
        isReplaced: isReplaced === true,
        ...(sqliteCode !== undefined && { sqliteCode }),
        ...(typeof code === "string" && { code }),
      },
    };
  }
}

parentPort?.on("message", (statement: Statement) => parentPort?.postMessage(respond(statement)));
