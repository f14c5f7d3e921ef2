import { readFileSync } from "node:fs";
import { type Kysely, PostgresDialect, sql } from "kysely";
import { type ClientConfig, Pool } from "pg";
import { parseIntoClientConfig } from "pg-connection-string";
import type { Backend, DatabaseFault } from "../backend/backend.ts";
import type { Tables } from "../backend/schema.ts";
import { loggingPool } from "./pool.ts";

/** Keys are followed by one query each 2 seconds; people at the dashboard need few more. */
const maxConnections = 4;
/** Longest wait for a connection, and for an answer: what waits longer is told as a failure and tried again later. */
const connectWithinMs = 5_000;
const answerWithinMs = 15_000;
/** Of PostgreSQL's own, so that a server which goes on alone does not hold a lock for ever. */
const idleTransactionMs = 10_000;
/** Any number, as long as nobody else's: it names the lock of migrations. */
const migrationLock = 7_337_251_908;

export interface PostgresOptions {
  /** Holds the password, and wins over the URL's; read again for each connection. */
  readonly passwordFile?: string | undefined;
}

/** @param url as `postgres://user:password@host:5432/database?sslmode=verify-full`. */
export function postgresBackend(url: string, { passwordFile }: PostgresOptions = {}): Backend {
  const pool = new Pool({
    ...requireChosenTls(url, readUrl(url)),
    ...(passwordFile !== undefined && { password: () => readFileSync(passwordFile, "utf8").trimEnd() }),
    application_name: "svc-tts",
    max: maxConnections,
    connectionTimeoutMillis: connectWithinMs,
    statement_timeout: answerWithinMs,
    query_timeout: answerWithinMs + 1_000,
    idle_in_transaction_session_timeout: idleTransactionMs,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  // Of a connection that nobody uses: the next query opens another, or tells.
  pool.on("error", () => undefined);
  // Of one in use, for which the pool does not listen: the query that is under way tells, or the next. Nobody listening would end the process.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return {
    dialect: new PostgresDialect({ pool: loggingPool(pool) }),
    name: databaseName(url),
    lockMigrations: async (trx: Kysely<Tables>) => {
      await sql`select pg_advisory_xact_lock(${migrationLock})`.execute(trx);
    },
    meaningOf,
  };
}

function readUrl(url: string): ClientConfig {
  try {
    return parseIntoClientConfig(url);
  } catch {
    // the cause would quote the URL, and with it the password
    throw new Error("the database's URL must be as postgres://user@host:5432/name, and this one is not");
  }
}

/** @throws Error if the URL leaves open whether TLS is used, unless the server is on this machine. */
function requireChosenTls(url: string, config: ClientConfig): ClientConfig {
  const isLocal = /^(\/.*|127(\.\d+){3}|\[?::1\]?|localhost|)$/u.test(config.host ?? "");
  if (isLocal || /[?&]sslmode=./u.test(url)) return config;
  throw new Error(
    "the database's URL must end in ?sslmode=verify-full, or in ?sslmode=disable if others may read the connection to it",
  );
}

/** @throws Error when it is no URL. */
export function databaseName(url: string): string {
  const { host = "", database = "" } = readUrl(url);
  return `postgres://${host}/${database}`;
}

/** SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html) by its first letters, and what the network said. */
const meanings: readonly (readonly [begin: string, meaning: string])[] = [
  ["28", "refuses this user or password; look at the URL, the password's file and pg_hba.conf"],
  ["3D", "is not there: the server has no database of this name; create it"],
  ["42501", "may not be changed by this user; make it the owner of the database or of its schema"],
  ["53100", "cannot be written as the server's disk is full; free some space"],
  ["53300", "has no connection left; raise max_connections, or give svc-tts a user of its own"],
  ["53", "has run out of something; look at the server's log"],
  ["57P", "is being stopped or started; it is tried again"],
  ["57014", "did not answer in time; look at its load and its locks"],
  ["40", "had several changes at once; it is tried again"],
  ["25006", "is read-only, a standby perhaps; name the primary"],
  ["58", "cannot be read or written: an input/output error. Look at the server's disk"],
  ["XX", "has an internal error, a damaged table perhaps; look at the server's log"],
  ["ECONNREFUSED", "is not there: nothing listens at that address"],
  ["ENOTFOUND", "is not there: its host's name is not known"],
  ["EAI_AGAIN", "cannot be found now: the name server does not answer"],
  ["ENOENT", "cannot be reached: a file that its settings name is not there"],
  ["E", "cannot be reached now"],
];

function meaningOf({ code, message }: DatabaseFault): string | undefined {
  if (code === undefined) return `cannot be reached now: ${message}`;
  return meanings.find(([begin]) => code.startsWith(begin))?.[1];
}
