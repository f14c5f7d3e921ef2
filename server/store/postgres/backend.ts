import { readFileSync } from "node:fs";
import { type Kysely, PostgresDialect, sql } from "kysely";
import { type ClientConfig, Pool } from "pg";
import { parseIntoClientConfig } from "pg-connection-string";
import type { Backend, DatabaseFault } from "../backend/backend.ts";
import type { Tables } from "../backend/schema.ts";
import { loggingPool } from "./pool.ts";

/** Following the keys needs one query every 2 seconds, and users of the dashboard need few more. */
const maxConnections = 4;
/** Longest wait for a connection and for a response. A longer wait fails, and the query is retried later. */
const connectWithinMs = 5_000;
const answerWithinMs = 15_000;
/** The same limit inside PostgreSQL, so that locks are released if this process hangs. */
const idleTransactionMs = 10_000;
/** Advisory lock of migrations. Any number works that no other program uses. */
const migrationLock = 7_337_251_908;

export interface PostgresOptions {
  /** File with the password, which overrides the URL's. It is read again for each connection. */
  readonly passwordFile?: string | undefined;
}

/** @param url for example `postgres://user:password@host:5432/database?sslmode=verify-full`. */
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
  // An error of an idle connection needs no report: the next query opens another connection, or fails with a
  // message.
  pool.on("error", () => undefined);
  // The pool does not listen to errors of a connection in use. The running query or the next one reports
  // them; without a listener the process would end.
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
    // The cause would quote the URL with the password.
    throw new Error(
      "the database's URL must have the form postgres://user@host:5432/name, and this one has not",
    );
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

/** @throws Error if the text is not a URL. */
export function databaseName(url: string): string {
  const { host = "", database = "" } = readUrl(url);
  return `postgres://${host}/${database}`;
}

/**
 * Explanations by the first letters of the SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html), and
 * by network errors.
 */
const meanings: readonly (readonly [begin: string, meaning: string])[] = [
  ["28", "rejected this user or password; check the URL, the password file and pg_hba.conf"],
  ["3D", "does not exist on the server; create it"],
  [
    "42501",
    "does not allow this user to change it; make the user the owner of the database or of its schema",
  ],
  ["53100", "cannot be written because the server's disk is full; free some space"],
  ["53300", "has no free connection; raise max_connections, or use a separate user for svc-tts"],
  ["53", "has insufficient resources; read the server's log"],
  ["57P", "is starting or stopping; svc-tts retries"],
  ["57014", "did not respond in time; check its load and its locks"],
  ["40", "had a conflict of concurrent changes; svc-tts retries"],
  ["25006", "is read-only, which may be a standby; use the URL of the primary"],
  ["58", "cannot be read or written because of an input/output error; check the server's disk"],
  ["XX", "has an internal error, for example a damaged table; read the server's log"],
  ["ECONNREFUSED", "is unreachable: no process listens at its address"],
  ["ENOTFOUND", "is unreachable: the name of its host does not exist"],
  ["EAI_AGAIN", "is unreachable: the name server does not respond"],
  ["ENOENT", "is unreachable: a file that its settings name does not exist"],
  ["E", "is unreachable"],
];

function meaningOf({ code, message }: DatabaseFault): string | undefined {
  if (code === undefined) return `is unreachable: ${message}`;
  return meanings.find(([begin]) => code.startsWith(begin))?.[1];
}
