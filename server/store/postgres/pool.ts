import type { PostgresPool, PostgresPoolClient } from "kysely";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "../backend/backend.ts";

/**
 * A connection pool whose failures are `DatabaseError`s, which differ from errors of the caller's own code.
 */
export function loggingPool(pool: Pool): PostgresPool {
  return {
    options: pool.options,
    connect: async () => toTelling(await telling(pool.connect())),
    end: () => pool.end(),
  };
}

function toTelling(client: PoolClient): PostgresPoolClient {
  const query = (text: unknown, values: readonly unknown[]): Promise<unknown> =>
    telling(client.query(text as string, [...values]));
  return {
    query: query as PostgresPoolClient["query"], // Cursors, the other form of the call, are not used.
    release: (destroy) => client.release(destroy),
  };
}

/** A table that existed is missing: the database was deleted, or restored from an older backup. */
const undefinedTable = "42P01";

async function telling<Result>(work: Promise<Result>): Promise<Result> {
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
