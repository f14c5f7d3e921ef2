import type { PostgresPool, PostgresPoolClient } from "kysely";
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "../backend/backend.ts";

/** The pool, whose failures are `DatabaseError`s: they are told apart from those of the work that is done with it. */
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
    query: query as PostgresPoolClient["query"], // cursors, its other form, are not used
    release: (destroy) => client.release(destroy),
  };
}

/** A table that was there and is not: the database was dropped or put back from an older backup. */
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
