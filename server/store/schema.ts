import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** Rows of the database. Times are milliseconds since the epoch. */
export interface Tables {
  /** What is known of a key; its secrets may change, and it stays. */
  readonly api_keys: {
    readonly id: string;
    readonly name: string;
    readonly team_id: string | null;
    /** With spaces between. */
    readonly scopes: string;
    readonly requests_per_minute: number | null;
    readonly streams: number | null;
    readonly created_at: number;
    readonly revoked_at: number | null;
  };
  /** More than one while a key is rotated. */
  readonly key_secrets: {
    /** SHA-256 of the secret, in hexadecimal digits; the secret itself is nowhere. */
    readonly sha256: string;
    readonly key_id: string;
    readonly created_at: number;
    readonly expires_at: number | null;
    readonly last_used_at: number | null;
  };
  /** A number for each thing that others follow, raised by whoever changes it. */
  readonly revisions: { readonly name: string; readonly number: number };
  /** Words that no dictionary had. */
  readonly oovs: {
    readonly key_id: string;
    readonly team_id: string | null;
    /** ISO 639-3. */
    readonly language: string;
    readonly word: string;
    readonly count: number;
    readonly first_seen: number;
    readonly last_seen: number;
  };
}

/** In the order of their names; one that has run anywhere is never changed. */
export const migrations: Readonly<Record<string, Migration>> = {
  "001-keys": { up: createKeys },
  "002-oovs": { up: createOovs },
};

async function createKeys(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("api_keys")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("team_id", "text")
    .addColumn("scopes", "text", (column) => column.notNull())
    .addColumn("requests_per_minute", "integer")
    .addColumn("streams", "integer")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("revoked_at", "bigint")
    .execute();
  await db.schema
    .createIndex("api_keys_name")
    .on("api_keys")
    .column("name")
    .unique()
    .where(sql.ref("revoked_at"), "is", null)
    .execute();
  await db.schema
    .createTable("key_secrets")
    .addColumn("sha256", "text", (column) => column.primaryKey())
    .addColumn("key_id", "text", (column) => column.notNull().references("api_keys.id"))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint")
    .addColumn("last_used_at", "bigint")
    .execute();
  await db.schema.createIndex("key_secrets_key").on("key_secrets").column("key_id").execute();
  await db.schema
    .createTable("revisions")
    .addColumn("name", "text", (column) => column.primaryKey())
    .addColumn("number", "bigint", (column) => column.notNull())
    .execute();
  await sql`insert into revisions (name, number) values ('keys', 1)`.execute(db);
}

async function createOovs(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("oovs")
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("team_id", "text")
    .addColumn("language", "text", (column) => column.notNull())
    .addColumn("word", "text", (column) => column.notNull())
    .addColumn("count", "bigint", (column) => column.notNull())
    .addColumn("first_seen", "bigint", (column) => column.notNull())
    .addColumn("last_seen", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("oovs_pk", ["key_id", "language", "word"])
    .execute();
  await db.schema.createIndex("oovs_team").on("oovs").columns(["team_id", "last_seen"]).execute();
  await db.schema.createIndex("oovs_key").on("oovs").columns(["key_id", "last_seen"]).execute();
}
