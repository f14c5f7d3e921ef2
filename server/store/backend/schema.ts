import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The rows of the tables. Times are milliseconds since the epoch. */
export interface Tables {
  /** An API key without its secrets. The row stays the same when the key is rotated. */
  readonly api_keys: {
    readonly id: string;
    readonly name: string;
    readonly team_id: string | null;
    /** The scopes, separated by spaces. */
    readonly scopes: string;
    readonly requests_per_minute: number | null;
    readonly streams: number | null;
    readonly created_at: number;
    readonly revoked_at: number | null;
  };
  /** A secret of an API key. A key has several secrets during a rotation. */
  readonly key_secrets: {
    /** The SHA-256 digest of the secret in hexadecimal digits. The secret itself is not stored. */
    readonly sha256: string;
    readonly key_id: string;
    readonly created_at: number;
    readonly expires_at: number | null;
    /**
     * A `KeyCreator`. The value is null for a secret that the command line created, and for a secret from
     * before migration 011.
     */
    readonly made_by: string | null;
    readonly last_used_at: number | null;
  };
  /**
   * The revision number of each kind of data that other processes cache. Each change increments the number.
   */
  readonly revisions: { readonly name: string; readonly number: number };
  /** The out-of-vocabulary words of each API key. */
  readonly oovs: {
    readonly key_id: string;
    readonly team_id: string | null;
    /** The ISO 639-3 code of the language. */
    readonly language: string;
    readonly word: string;
    /** The sentence around the word, if the team keeps sentences. */
    readonly sentence: string | null;
    readonly count: number;
    readonly first_seen: number;
    readonly last_seen: number;
  };
  /** The users of the dashboard. */
  readonly users: {
    readonly id: string;
    /** The name in lower case. */
    readonly name: string;
    readonly role: string;
    readonly team_id: string | null;
    /** The Argon2id hash as a PHC string. The value is null until the user has chosen a password. */
    readonly password: string | null;
    readonly created_at: number;
  };
  readonly sessions: {
    /** The SHA-256 digest of the cookie in hexadecimal digits. */
    readonly sha256: string;
    readonly user_id: string;
    readonly created_at: number;
    readonly seen_at: number;
  };
  /** The invitation links with which users choose a password. */
  readonly invitations: {
    /** The SHA-256 digest of the link's secret in hexadecimal digits. */
    readonly sha256: string;
    readonly user_id: string;
    readonly expires_at: number;
  };
  /** The identities of users at OpenID Connect providers. */
  readonly identities: {
    /** The URL of the provider. */
    readonly issuer: string;
    /** The provider's ID of the user. */
    readonly subject: string;
    readonly user_id: string;
    /** 1 if the user's groups grant the role and the team; 0 if an owner has set them. */
    readonly is_granted: number;
  };
  /**
   * The mark that the dashboard is set up. The table gets one row when the first owner is added, and the row
   * is never deleted.
   */
  readonly set_up: { readonly id: number; readonly at: number };
  /**
   * The oldest release that can use these tables. The table has one row with the name of that release's last
   * migration.
   */
  readonly schema_readers: { readonly id: number; readonly oldest: string };
  /** The audit log. Rows are never changed, and are deleted after the retention time. */
  readonly audit: {
    readonly id: string;
    readonly at: number;
    readonly actor: string;
    readonly action: string;
    readonly subject: string;
    readonly detail: string;
  };
  /** The pronunciations of the teams. */
  readonly lexicon: {
    /** The team. The value is empty for keys without a team. */
    readonly team_id: string;
    /** The ISO 639-3 code of the language. */
    readonly language: string;
    /** The word in lower case. */
    readonly word: string;
    /** The pronunciation in the public phonetic alphabet. */
    readonly phonemes: string;
  };
  readonly team_settings: {
    /** The team. The value is empty for keys without a team. */
    readonly team_id: string;
    /** 1 if the team keeps sentences, otherwise 0. */
    readonly keep_sentences: number;
  };
  /** Words that a team has dismissed from review. */
  readonly dismissed_words: {
    readonly team_id: string;
    readonly language: string;
    /** The word in lower case. */
    readonly word: string;
  };
  /** The daily usage of API keys. */
  readonly key_usage: {
    readonly key_id: string;
    /** The day in UTC, for example `2027-01-31`. */
    readonly day: string;
    readonly requests: number;
    readonly failed: number;
    readonly audio_ms: number;
  };
  /** The daily usage of voices by speech requests. */
  readonly voice_usage: {
    /** The day in UTC, for example `2027-01-31`. */
    readonly day: string;
    readonly key_id: string;
    /** The name of the key on that day. The row keeps the name after the key is deleted. */
    readonly key: string;
    /** The team. The value is empty for keys without a team. */
    readonly team_id: string;
    readonly model: string;
    readonly voice: string;
    readonly requests: number;
    readonly failed: number;
    readonly characters: number;
    readonly audio_ms: number;
    /**
     * The number of requests with a measured time to first audio. The next columns are the sum and the
     * maximum of the times in milliseconds.
     */
    readonly timed: number;
    readonly first_audio_ms: number;
    readonly longest_first_audio_ms: number;
  };
}

/**
 * The migrations in the order of their names. A published migration never changes. The previous release runs
 * at the same time during a rollout, and again after a rollback. A migration therefore only adds tables, and
 * columns that may be null or have a default. Replaced tables and columns are removed in a later release,
 * which raises `oldestReader`.
 */
export const migrations: Readonly<Record<string, Migration>> = {
  "001-keys": { up: createKeys },
  "002-oovs": { up: createOovs },
  "003-accounts": { up: createAccounts },
  "004-usage": { up: createUsage },
  "005-lexicon": { up: createLexicon },
  "006-sentences": { up: addSentences },
  "007-identities": { up: createIdentities },
  "008-voice-usage": { up: createVoiceUsage },
  "009-set-up": { up: createSetUp },
  "010-schema-readers": { up: createSchemaReaders },
  "011-key-makers": { up: addKeyMakers },
};

/**
 * The last migration of the oldest release that can use the tables of this release. Older releases refuse to
 * start with these tables.
 */
export const oldestReader = "009-set-up";

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

async function createAccounts(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("users")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("name", "text", (column) => column.notNull().unique())
    .addColumn("role", "text", (column) => column.notNull())
    .addColumn("team_id", "text")
    .addColumn("password", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("sessions")
    .addColumn("sha256", "text", (column) => column.primaryKey())
    .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("seen_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("invitations")
    .addColumn("sha256", "text", (column) => column.primaryKey())
    .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("audit")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("at", "bigint", (column) => column.notNull())
    .addColumn("actor", "text", (column) => column.notNull())
    .addColumn("action", "text", (column) => column.notNull())
    .addColumn("subject", "text", (column) => column.notNull())
    .addColumn("detail", "text", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("audit_at").on("audit").column("at").execute();
  await sql`insert into revisions (name, number) values ('accounts', 1)`.execute(db);
}

async function createUsage(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("key_usage")
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("day", "text", (column) => column.notNull())
    .addColumn("requests", "bigint", (column) => column.notNull())
    .addColumn("failed", "bigint", (column) => column.notNull())
    .addColumn("audio_ms", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("key_usage_pk", ["key_id", "day"])
    .execute();
}

async function createLexicon(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("lexicon")
    .addColumn("team_id", "text", (column) => column.notNull())
    .addColumn("language", "text", (column) => column.notNull())
    .addColumn("word", "text", (column) => column.notNull())
    .addColumn("phonemes", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("lexicon_pk", ["team_id", "language", "word"])
    .execute();
  await db.schema
    .createTable("dismissed_words")
    .addColumn("team_id", "text", (column) => column.notNull())
    .addColumn("language", "text", (column) => column.notNull())
    .addColumn("word", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("dismissed_words_pk", ["team_id", "language", "word"])
    .execute();
  await sql`insert into revisions (name, number) values ('lexicon', 1)`.execute(db);
}

async function addSentences(db: Kysely<never>): Promise<void> {
  await db.schema.alterTable("oovs").addColumn("sentence", "text").execute();
  await db.schema
    .createTable("team_settings")
    .addColumn("team_id", "text", (column) => column.primaryKey())
    .addColumn("keep_sentences", "integer", (column) => column.notNull())
    .execute();
}

async function createIdentities(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("identities")
    .addColumn("issuer", "text", (column) => column.notNull())
    .addColumn("subject", "text", (column) => column.notNull())
    .addColumn("user_id", "text", (column) =>
      column.notNull().unique().references("users.id").onDelete("cascade"),
    )
    .addColumn("is_granted", "integer", (column) => column.notNull())
    .addPrimaryKeyConstraint("identities_pk", ["issuer", "subject"])
    .execute();
}

async function createVoiceUsage(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("voice_usage")
    .addColumn("day", "text", (column) => column.notNull())
    .addColumn("key_id", "text", (column) => column.notNull())
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("team_id", "text", (column) => column.notNull())
    .addColumn("model", "text", (column) => column.notNull())
    .addColumn("voice", "text", (column) => column.notNull())
    .addColumn("requests", "bigint", (column) => column.notNull())
    .addColumn("failed", "bigint", (column) => column.notNull())
    .addColumn("characters", "bigint", (column) => column.notNull())
    .addColumn("audio_ms", "bigint", (column) => column.notNull())
    .addColumn("timed", "bigint", (column) => column.notNull())
    .addColumn("first_audio_ms", "bigint", (column) => column.notNull())
    .addColumn("longest_first_audio_ms", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("voice_usage_pk", ["day", "key_id", "model", "voice"])
    .execute();
  await db.schema.createIndex("voice_usage_team").on("voice_usage").columns(["team_id", "day"]).execute();
}

/**
 * Creates the mark that the dashboard is set up. The dashboard counts as set up if an owner exists. It also
 * counts as set up if the audit log has an entry about an owner, because changed groups of a provider may
 * have removed the role.
 */
async function createSetUp(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("set_up")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("at", "bigint", (column) => column.notNull())
    .execute();
  await sql`insert into set_up (id, at)
    select 1, min(at) from (
      select created_at as at from users where role = 'owner'
      union all
      select at from audit
      where action in ('person added', 'person changed') and (detail = 'the first owner' or detail like 'owner%')
    ) as owners
    having min(at) is not null`.execute(db);
}

async function createSchemaReaders(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable("schema_readers")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("oldest", "text", (column) => column.notNull())
    .execute();
}

async function addKeyMakers(db: Kysely<never>): Promise<void> {
  await db.schema.alterTable("key_secrets").addColumn("made_by", "text").execute();
}
