import { readFileSync } from "node:fs";
import { type Kysely, PostgresDialect, sql } from "kysely";
import { type ClientConfig, Pool } from "pg";
import { parseIntoClientConfig } from "pg-connection-string";
import type { Backend, DatabaseFault } from "../backend/backend.ts";
import type { Tables } from "../backend/schema.ts";
import { loggingPool } from "./pool.ts";

/**
 * The limit of connections. The cache of API keys sends one query every 2 seconds, and the dashboard sends
 * few queries.
 */
const maxConnections = 4;
/**
 * The time limits of a connection and of a response. After this time, the query fails, and the server retries
 * it later.
 */
const connectWithinMs = 5_000;
const respondWithinMs = 15_000;
/**
 * The limit after which PostgreSQL ends an idle transaction. This limit releases the locks of a process that
 * hangs.
 */
const idleTransactionMs = 10_000;
/** The number of the advisory lock of migrations. No other program must use the number. */
const migrationLock = 7_337_251_908;

export interface PostgresOptions {
  /**
   * The file with the password. This password overrides the password in the URL. The server reads the file
   * again for each connection.
   */
  readonly passwordFile?: string | undefined;
}

/**
 * Connects to PostgreSQL.
 * @param url the URL, for example `postgres://user:password@host:5432/database?sslmode=verify-full`.
 */
export function postgresBackend(url: string, { passwordFile }: PostgresOptions = {}): Backend {
  const pool = new Pool({
    ...requireTlsSetting(url, readUrl(url)),
    ...(passwordFile !== undefined && { password: () => readFileSync(passwordFile, "utf8").trimEnd() }),
    application_name: "svc-tts",
    max: maxConnections,
    connectionTimeoutMillis: connectWithinMs,
    statement_timeout: respondWithinMs,
    query_timeout: respondWithinMs + 1_000,
    idle_in_transaction_session_timeout: idleTransactionMs,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  // The error of an idle connection is ignored. The next query opens another connection, or fails with a
  // message.
  pool.on("error", () => undefined);
  // The listener keeps the process alive if a connection in use fails. The running query or the next query
  // reports the error.
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
    // The cause is left out, because it would quote the URL with the password.
    throw new Error(
      "the URL of the database is invalid; it must have the form postgres://user@host:5432/name",
    );
  }
}

/**
 * Requires that the URL of a remote server states whether TLS is used.
 * @throws Error if the URL of a remote server has no `sslmode`.
 */
function requireTlsSetting(url: string, config: ClientConfig): ClientConfig {
  const isLocal = /^(\/.*|127(\.\d+){3}|\[?::1\]?|localhost|)$/u.test(config.host ?? "");
  if (isLocal || /[?&]sslmode=./u.test(url)) return config;
  throw new Error(
    "the URL of the database does not state whether TLS is used; add ?sslmode=verify-full, or ?sslmode=disable for a connection without encryption",
  );
}

/**
 * Returns the name of the database for messages, without user and password.
 * @throws Error if the URL is invalid.
 */
export function databaseName(url: string): string {
  const { host = "", database = "" } = readUrl(url);
  return `postgres://${host}/${database}`;
}

/**
 * The explanations of errors. The keys are the first characters of the SQLSTATE
 * (postgresql.org/docs/current/errcodes-appendix.html), or the code of a network error.
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
  ["57P", "is starting or stopping; svc-tts retries, and no action is needed"],
  ["57014", "did not respond in time; check its load and its locks"],
  ["40", "had a conflict of concurrent changes; svc-tts retries, and no action is needed"],
  ["25006", "is read-only, which may be a standby; use the URL of the primary"],
  ["58", "cannot be read or written because of an input/output error; check the server's disk"],
  ["XX", "has an internal error, for example a damaged table; read the server's log"],
  [
    "ECONNREFUSED",
    "is unreachable: no process listens at its address; check the URL, and that PostgreSQL runs",
  ],
  ["ENOTFOUND", "is unreachable: its host name does not exist; check the URL"],
  ["EAI_AGAIN", "is unreachable: the DNS server does not respond; check the DNS"],
  [
    "ENOENT",
    "is unreachable: a file of its settings does not exist; check the paths of the password and the certificate",
  ],
  ["E", "is unreachable; check the URL and the network"],
];

function meaningOf({ code, message }: DatabaseFault): string | undefined {
  if (code === undefined) return `is unreachable: ${message}`;
  return meanings.find(([begin]) => code.startsWith(begin))?.[1];
}
