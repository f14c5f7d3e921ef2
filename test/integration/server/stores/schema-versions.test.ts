import { join } from "node:path";
import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { migrations, oldestReader } from "../../../../server/store/backend/schema.ts";
import { type Database, openDatabase } from "../../../../server/store/database/database.ts";
import type { Schema } from "../../../../server/store/database/migrate.ts";
import { createKey, type KeyFacts } from "../../../../server/store/keys/key.ts";
import { openKeyTableBook } from "../../../../server/store/keys/key-table.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";

const folder = folderOfTests("schema");
let postgres: TestPostgres;
let files = 0;
const open: Database[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
});
afterEach(async () => {
  for (const database of open.splice(0)) await database.close();
});
afterAll(() => postgres.stop());

function opened(location: string, schema?: Schema): Database {
  const database = openDatabase(location, schema && { schema });
  open.push(database);
  return database;
}

const now = Date.UTC(2030, 0, 1);
const facts = (name: string): KeyFacts => ({ name, scopes: ["tts:write"], limits: {}, team: "blue" });
const create = (database: Database, name: string) =>
  openKeyTableBook(database, () => now).create(createKey(), facts(name));
const names = async (database: Database) =>
  (await openKeyTableBook(database, () => now).list()).map(({ name }) => name);

/** A migration of the next release, which only adds columns and tables. */
const added: Migration = {
  up: async (db: Kysely<never>) => {
    await db.schema.alterTable("api_keys").addColumn("note", "text").execute();
    await db.schema
      .alterTable("key_secrets")
      .addColumn("uses", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema.createTable("notes").addColumn("id", "text").execute();
  },
};
const next: Schema = { migrations: { ...migrations, "998-notes": added }, oldestReader };
/** A migration of the release after the next, which removes a column that only older releases use. */
const removed: Migration = {
  up: async (db: Kysely<never>) => {
    await db.schema.alterTable("api_keys").dropColumn("requests_per_minute").execute();
  },
};
const afterNext: Schema = {
  migrations: { ...next.migrations, "999-limits": removed },
  oldestReader: "998-notes",
};

const executed = (database: Database) =>
  database.run(async (db) => {
    const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db);
    return rows.map(({ name }) => name);
  });

describe.each([
  ["SQLite", async () => join(folder, `${files++}.db`)],
  ["PostgreSQL", () => postgres.newDatabase()],
])("a database in %s", (_, newDatabase) => {
  it("can be used by this release and a newer release that extended it at the same time", async () => {
    const location = await newDatabase();
    await create(opened(location), "before");
    const newer = opened(location, next);
    await create(newer, "during");
    const older = opened(location);
    await create(older, "after the rollback");
    expect(await names(older)).toEqual(["after the rollback", "before", "during"]);
    expect(await names(newer)).toEqual(["after the rollback", "before", "during"]);
    expect(await executed(older)).toEqual(Object.keys(next.migrations));
    expect(await executed(opened(location, next))).toEqual(Object.keys(next.migrations));
  });

  it("is rejected with a message and stays unchanged if a newer release is incompatible with this release", async () => {
    const location = await newDatabase();
    await create(opened(location), "before");
    const newest = opened(location, afterNext);
    expect(await executed(newest)).toEqual(Object.keys(afterNext.migrations));
    const older = opened(location);
    const latest = Object.keys(migrations).at(-1);
    await expect(create(older, "refused")).rejects.toThrow(
      `was migrated by a newer release (999-limits), and releases before migration 998-notes cannot use it. The last migration of this release is ${latest}. Start a newer release`,
    );
    await expect(names(older)).rejects.toThrow("Start a newer release");
    expect(await executed(newest)).toEqual(Object.keys(afterNext.migrations));
    const { rows } = await newest.run((db) => sql`select name from api_keys`.execute(db));
    expect(rows).toEqual([{ name: "before" }]);
    // The release between the two can still use the database, and does not lower the minimum version.
    expect(await executed(opened(location, next))).toEqual(Object.keys(afterNext.migrations));
    await expect(names(opened(location))).rejects.toThrow("Start a newer release");
  });

  it("is rejected with the names of unknown and missing migrations if it belongs to another line of releases", async () => {
    const location = await newDatabase();
    const { "010-schema-readers": _own, ...before } = migrations;
    const other = {
      migrations: { ...before, "010-others": added, "011-schema-readers": _own },
      oldestReader,
    } as Schema;
    expect(await executed(opened(location, other))).toContain("010-others");
    await expect(names(opened(location))).rejects.toThrow(
      "has migrations that are unknown to this release (010-others, 011-schema-readers), and lacks migrations that this release requires (010-schema-readers)",
    );
  });
});
