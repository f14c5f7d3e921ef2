import { type Kysely, sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import type { Backend } from "../backend/backend.ts";
import type { Tables } from "../backend/schema.ts";

/** The schema of one release. */
export interface Schema {
  /** The migrations, in the order of their names. */
  readonly migrations: Readonly<Record<string, Migration>>;
  /** The last migration of the oldest release that can use these tables. */
  readonly oldestReader: string;
}

/** A migration failed. The cause is the error of the database. */
export class MigrationError extends Error {
  constructor(cause: unknown) {
    super((cause as Error).message, { cause });
    this.name = "MigrationError";
  }
}

/** The tables belong to another release, and this release must not use the tables. */
export class SchemaMismatch extends Error {
  constructor(message: string) {
    super(message);
    this.name = "SchemaMismatch";
  }
}

/**
 * Migrates the tables to this release's schema in one transaction. If several processes start at the same
 * time, one of them migrates and the others wait. Tables of a newer release stay unchanged. A rollback
 * therefore works, and both releases can serve during a rollout.
 * @throws SchemaMismatch if this release cannot use the tables, which then stay unchanged.
 */
export function migrate(db: Kysely<Tables>, { lockMigrations }: Backend, schema: Schema): Promise<void> {
  return db.transaction().execute(async (trx) => {
    await lockMigrations(trx);
    const names = Object.keys(schema.migrations);
    const executed = await executedMigrations(trx);
    const unknown = executed.filter((name) => !names.includes(name));
    if (unknown.length > 0) return acceptNewer(trx, names, executed, unknown);
    const migrator = new Migrator({
      db: trx,
      provider: { getMigrations: async () => ({ ...schema.migrations }) },
    });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw new MigrationError(error);
    await recordOldestReader(trx, schema.oldestReader);
  });
}

async function executedMigrations(db: Kysely<Tables>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === "kysely_migration")) return [];
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
  return rows.map(({ name }) => name);
}

async function acceptNewer(
  db: Kysely<Tables>,
  names: readonly string[],
  executed: readonly string[],
  unknown: readonly string[],
): Promise<void> {
  const missing = names.filter((name) => !executed.includes(name));
  if (missing.length > 0)
    throw new SchemaMismatch(
      `has migrations that are unknown to this release (${unknown.join(", ")}), and lacks migrations that this release requires (${missing.join(", ")}). Start the release that created the tables, or restore a backup`,
    );
  const row = await db.selectFrom("schema_readers").select("oldest").executeTakeFirst();
  const latest = names.at(-1) ?? "";
  if (row !== undefined && latest < row.oldest)
    throw new SchemaMismatch(
      `was migrated by a newer release (${unknown.at(-1)}), and releases before migration ${row.oldest} cannot use it. The last migration of this release is ${latest}. Start a newer release, or restore a backup from before the upgrade`,
    );
}

async function recordOldestReader(db: Kysely<Tables>, oldest: string): Promise<void> {
  await db
    .insertInto("schema_readers")
    .values({ id: 1, oldest })
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({ oldest }).where("schema_readers.oldest", "<", oldest),
    )
    .execute();
}
