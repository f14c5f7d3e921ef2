import type { PostgresPool, PostgresPoolClient } from "kysely";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "../backend/backend.ts";

/**
 * Wraps a connection pool. Its errors become `DatabaseError`s, which are distinct from errors of the caller's
 * own code.
 */
export function loggingPool(pool: Pool): PostgresPool {
  return {
    options: pool.options,
    connect: async () => wrapClient(await convertErrors(pool.connect())),
    end: () => pool.end(),
  };
}

function wrapClient(client: PoolClient): PostgresPoolClient {
  const query = (text: unknown, values: readonly unknown[]): Promise<unknown> =>
    convertErrors(client.query(text as string, [...values]));
  return {
    query: query as PostgresPoolClient["query"], // The call with a cursor is not used.
    release: (destroy) => client.release(destroy),
  };
}

/** The SQLSTATE of a missing table. The database was deleted, or restored from an older backup. */
const undefinedTable = "42P01";

async function convertErrors<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: unknown };
    throw new DatabaseError(
      {
        message,
        ...(typeof code === "string" && { code }),
        isReplaced: code === undefinedTable,
      },
      { cause: error },
    );
  }
}
