import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Accounts, createAccounts } from "../../../../server/store/accounts/accounts.ts";
import { createSessions, sessionId } from "../../../../server/store/accounts/sessions.ts";
import { listAudit, writeAudit } from "../../../../server/store/audit.ts";
import { limitAudit } from "../../../../server/store/audit-retention.ts";
import { migrations, type Tables } from "../../../../server/store/backend/schema.ts";
import { type Database, isPostgresUrl, openDatabase } from "../../../../server/store/database/database.ts";
import { createKey, digestKey, type KeyFacts } from "../../../../server/store/keys/key.ts";
import type { KeyCreator } from "../../../../server/store/keys/key-creators.ts";
import { openKeyFileBook } from "../../../../server/store/keys/key-file.ts";
import type { KeyManager } from "../../../../server/store/keys/key-manager.ts";
import { KeyIndex } from "../../../../server/store/keys/key-store.ts";
import { createKeyTable, openKeyTableBook } from "../../../../server/store/keys/key-table.ts";
import { createLexiconTable, LexiconError } from "../../../../server/store/lexicon.ts";
import { createOovStore, type ObservedOov } from "../../../../server/store/oov-store.ts";
import { postgresBackend } from "../../../../server/store/postgres/backend.ts";
import { sqliteBackend } from "../../../../server/store/sqlite/backend.ts";
import { createSentenceSetting } from "../../../../server/store/team-settings.ts";
import { listUsage, recordUsage } from "../../../../server/store/usage.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock, settle } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";

const folder = folderOfTests("stores");
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

function opened(location: string): Database {
  const database = openDatabase(location);
  open.push(database);
  return database;
}

const now = Date.UTC(2030, 0, 1);
const hour = 3_600_000;
/** The time of the accounts and sessions, which tests advance. */
let clock = now;
const facts: KeyFacts = { name: "app", scopes: ["tts:write"], limits: { streams: 3 }, team: "blue" };

const kinds: readonly [string, () => Promise<string>][] = [
  ["SQLite", async () => join(folder, `${files++}.db`)],
  ["PostgreSQL", () => postgres.newDatabase()],
];

const books: readonly [string, () => Promise<KeyManager>][] = [
  ...kinds.map(([kind, newDatabase]): [string, () => Promise<KeyManager>] => [
    `of ${kind}`,
    async () => openKeyTableBook(opened(await newDatabase()), () => now),
  ]),
  [
    "of a file",
    async () => {
      let text = "";
      const write = (next: string) => {
        text = next;
      };
      return openKeyFileBook({ read: () => text, write, now: () => now });
    },
  ],
];

describe.each(books)("a key store %s", (_, openBook) => {
  it("creates, lists, rotates and revokes keys", async () => {
    const book = await openBook();
    const [first, second] = [createKey(), createKey()];
    await book.create(first, facts);
    await book.create(createKey(), { name: "other", scopes: ["admin", "oov:read"], expiresAt: now + hour });
    await expect(book.create(createKey(), facts)).rejects.toThrow("a key named app already");
    await book.rotate("app", second, { endOfOthers: now + 2 * hour });
    await book.rotate("other", createKey(), { endOfOthers: now + 2 * hour, expiresAt: now + 9 * hour });
    const digest = (key: string) => digestKey(key).toString("hex").slice(0, 8);
    expect(await book.list()).toMatchObject([
      {
        ...facts,
        secrets: [{ digest: digest(first), expiresAt: now + 2 * hour }, { digest: digest(second) }],
      },
      { name: "other", secrets: [{ expiresAt: now + hour }, { expiresAt: now + 9 * hour }] },
    ]);
    await book.revoke("app");
    expect((await book.list()).map(({ name }) => name)).toEqual(["other"]);
    await expect(book.revoke("app")).rejects.toThrow("the key app does not exist");
    await expect(book.rotate("app", createKey(), { endOfOthers: 0 })).rejects.toThrow(
      "the key app does not exist",
    );
    await book.create(createKey(), facts); // The name is available again.
  });

  it("rotates a key with its expiry, and rejects an expired key", async () => {
    const book = await openBook();
    await book.create(createKey(), { ...facts, expiresAt: now + 9 * hour });
    for (const overlap of [hour, 2 * hour]) {
      await book.rotate("app", createKey(), { endOfOthers: now + overlap });
    }
    await book.create(createKey(), { ...facts, name: "endless" });
    await book.rotate("endless", createKey(), { endOfOthers: now + hour });
    await book.rotate("endless", createKey(), { endOfOthers: now + hour });
    const ends = (await book.list()).map(({ secrets }) => secrets.map(({ expiresAt }) => expiresAt));
    expect(ends).toEqual([
      [now + hour, now + 2 * hour, now + 9 * hour],
      [now + hour, now + hour, undefined],
    ]);
    await book.create(createKey(), { ...facts, name: "ended", expiresAt: now });
    const revived = book.rotate("ended", createKey(), { endOfOthers: now, expiresAt: now + hour });
    await expect(revived).rejects.toThrow("the key ended does not exist");
  });
});

describe.each(kinds)("%s", (_, newDatabase) => {
  describe("the table of keys", () => {
    it("lists the valid keys, keeps the id of a rotated key, and never contains a key itself", async () => {
      const location = await newDatabase();
      const database = opened(location);
      const book = openKeyTableBook(database, () => now);
      const table = createKeyTable(database, () => now);
      const [old, fresh, expired] = [createKey(), createKey(), createKey()];
      const before = await table.revision();
      await book.create(old, facts);
      await book.rotate("app", fresh, { endOfOthers: now + hour });
      await book.create(expired, { ...facts, name: "expired", expiresAt: now });
      expect(await table.revision()).toBe(before + 3);
      const index = new KeyIndex(await table.load());
      expect(index.find(digestKey(old))).toMatchObject({ ...facts, expiresAt: now + hour });
      expect(index.find(digestKey(fresh))?.id).toBe(index.find(digestKey(old))?.id);
      expect(index.find(digestKey(expired))).toBeUndefined();
      await table.used(new Map([[digestKey(fresh).toString("hex"), now]]));
      expect((await book.list())[0]?.secrets.map(({ lastUsedAt }) => lastUsedAt)).toEqual([undefined, now]);
      expect(await table.revision()).toBe(before + 3); // A use is not a change.
      await book.revoke("app");
      expect(await table.load()).toEqual([]);
      const rows = await database.run((db) => db.selectFrom("key_secrets").selectAll().execute());
      expect(rows).toHaveLength(3);
      expect(JSON.stringify(rows)).not.toContain(fresh.slice(4));
      if (!location.startsWith("postgres:")) expect(statSync(location).mode & 0o777).toBe(0o600);
    });

    it("can be shared by processes, which read each other's changes and may start at the same time", async () => {
      const location = await newDatabase();
      const tables = [opened(location), opened(location), opened(location)].map((database) => ({
        table: createKeyTable(database, () => now),
        book: openKeyTableBook(database, () => now),
      }));
      await Promise.all(tables.map(({ table }) => table.revision()));
      await Promise.all(
        tables.map(({ book }, i) => book.create(createKey(), { name: `key ${i}`, scopes: ["admin"] })),
      );
      for (const { table } of tables) expect(await table.load()).toHaveLength(3);
    });
  });

  describe("out-of-vocabulary words", () => {
    const oov = (word: string, more: Partial<ObservedOov> = {}): ObservedOov => ({
      keyId: "k1",
      team: undefined,
      language: "eng",
      word,
      count: 1,
      firstSeen: now,
      lastSeen: now,
      ...more,
    });

    it("are counted by word, and are visible only to their key or team", async () => {
      const store = createOovStore(opened(await newDatabase()));
      await store.add([oov("zorblax"), oov("quuxly", { count: 2, language: "nld" })]);
      await store.add([oov("zorblax", { count: 3, firstSeen: now + 1, lastSeen: now + 2 })]);
      await store.add([
        oov("teamword", { keyId: "k2", team: "blue" }),
        oov("teamword", { keyId: "k3", team: "blue" }),
      ]);
      expect(await store.list({ keyId: "k1", team: undefined }, { limit: 10 })).toEqual([
        { word: "zorblax", language: "eng", count: 4, firstSeen: now, lastSeen: now + 2 },
        { word: "quuxly", language: "nld", count: 2, firstSeen: now, lastSeen: now },
      ]);
      expect(await store.list({ keyId: "k9", team: "blue" }, { limit: 10 })).toMatchObject([
        { word: "teamword", count: 2 },
      ]);
      const dutch = await store.list({ keyId: "k1", team: undefined }, { limit: 10, language: "nld" });
      expect(dutch.map(({ word }) => word)).toEqual(["quuxly"]);
      expect(await store.list({ keyId: "k1", team: undefined }, { limit: 1 })).toHaveLength(1);
    });

    it("have the first and last time of a word and its latest sentence, also if they arrive in another order", async () => {
      const database = opened(await newDatabase());
      await createSentenceSetting(database, () => now).turn("ada", "blue", true);
      const store = createOovStore(database);
      const add = (at: number, sentence: string | undefined) =>
        store.add([oov("zorblax", { team: "blue", firstSeen: now + at, lastSeen: now + at + 1, sentence })]);
      await add(10, "A newer zorblax.");
      await add(0, "An older zorblax.");
      await add(20, undefined);
      await add(5, "Another zorblax.");
      expect(await store.list({ keyId: "k1", team: "blue" }, { limit: 9 })).toEqual([
        { word: "zorblax", language: "eng", count: 4, firstSeen: now, lastSeen: now + 21 },
      ]);
      const [word] = await createLexiconTable(database, () => now).review("blue", 9);
      expect(word?.sentence).toBe("A newer zorblax.");
    });

    it("are limited in number, and the oldest words are removed first", async () => {
      const store = createOovStore(opened(await newDatabase()));
      const words = Array.from({ length: 10_003 }, (_, i) => oov(`w${i}`, { lastSeen: now + i }));
      await store.add(words);
      const kept = await store.list({ keyId: "k1", team: undefined }, { limit: 20_000 });
      expect(kept).toHaveLength(10_000);
      expect(kept.at(-1)?.word).toBe("w3");
    });
  });
});

describe.each(kinds)("users in %s", (_, newDatabase) => {
  const people = async () => {
    const database = opened(await newDatabase());
    return {
      accounts: createAccounts(database, () => clock),
      sessions: createSessions(database, () => clock),
      changes: async () => (await listAudit(database, 100)).map(({ actor, action }) => `${actor}: ${action}`),
    };
  };
  const bob = { name: "bob", role: "member", team: "blue" } as const;
  beforeEach(() => {
    clock = now;
  });

  it("have one first owner, also if several requests arrive at the same time", async () => {
    const { accounts, changes } = await people();
    const tries = ["ada", "eve", "mallory"].map((name) => accounts.setUp(name, "kept"));
    const succeeded = (await Promise.allSettled(tries)).filter(({ status }) => status === "fulfilled");
    expect(succeeded).toHaveLength(1);
    expect(await accounts.list()).toHaveLength(1);
    expect(await changes()).toHaveLength(1);
  });

  it("keep at least one owner who can sign in, also if two owners remove each other at the same time", async () => {
    const { accounts } = await people();
    const ada = await accounts.setUp("ada", "kept");
    const eve = await accounts.join(await accounts.add("ada", { name: "eve", role: "owner" }), "kept");
    const tries = [accounts.remove("eve", ada.id), accounts.remove("ada", eve.id)];
    const succeeded = (await Promise.allSettled(tries)).filter(({ status }) => status === "fulfilled");
    expect(succeeded).toHaveLength(1);
    expect(await accounts.list()).toHaveLength(1);
  });

  it("can be removed together with the keys that they, or their admin keys, created or rotated", async () => {
    const database = opened(await newDatabase());
    const accounts = createAccounts(database, () => now);
    const books = (maker?: KeyCreator) =>
      openKeyTableBook(database, () => now, { actor: "x", ...(maker && { maker }) });
    await accounts.setUp("ada", "kept");
    const eve = await accounts.join(await accounts.add("ada", { name: "eve", role: "owner" }), "kept");
    const [hers, others] = [books(`person:${eve.id}`), books("person:other")];
    const scopes = ["tts:write"] as const;
    await hers.create(createKey(), { name: "made", scopes });
    await hers.create(createKey(), { name: "root", scopes: ["admin"] });
    const root = (await hers.list()).find(({ name }) => name === "root");
    await books(`key:${root?.id}`).create(createKey(), { name: "by root", scopes });
    await others.create(createKey(), { name: "rotated", scopes });
    await hers.rotate("rotated", createKey(), { endOfOthers: now });
    await others.create(createKey(), { name: "not hers", scopes });
    await hers.create(createKey(), { name: "ended", scopes, expiresAt: now });
    await books().create(createKey(), { name: "of the command line", scopes });
    await hers.create(createKey(), { name: "revoked", scopes });
    await hers.revoke("revoked");
    const made = (await accounts.madeKeys())(eve.id).map(({ name }) => name);
    expect(made.toSorted()).toEqual(["by root", "made", "root", "rotated"]);
    const before = await createKeyTable(database, () => now).revision();
    await accounts.remove("ada", eve.id, true);
    expect(await createKeyTable(database, () => now).revision()).toBe(before + 1);
    expect((await books().list()).map(({ name }) => name)).toEqual(["not hers", "of the command line"]);
    const revoked = (await listAudit(database, 100)).filter(({ actor }) => actor === "ada");
    expect(revoked.filter(({ action }) => action === "key revoked")).toHaveLength(4);
  });

  it("can use a link once before it expires, and a new link replaces the old link", async () => {
    const { accounts, changes } = await people();
    await accounts.setUp("ada", "kept");
    const first = await accounts.add("ada", bob);
    const [{ id = "" } = {}] = (await accounts.list()).filter(({ name }) => name === "bob");
    const second = await accounts.invite("ada", id);
    expect(await accounts.invited(first)).toBeUndefined();
    clock += 7 * 24 * hour;
    expect(await accounts.invited(second)).toBeUndefined();
    await expect(accounts.join(second, "kept")).rejects.toThrow("This link was used or has expired");
    const third = await accounts.invite("ada", id);
    expect(await accounts.join(third, "kept by bob")).toEqual({ id, ...bob });
    await expect(accounts.join(third, "kept")).rejects.toThrow("This link was used or has expired");
    expect(await accounts.find("bob")).toEqual({ person: { id, ...bob }, password: "kept by bob" });
    await expect(accounts.add("ada", bob)).rejects.toThrow("A user named bob already");
    expect((await changes()).toSorted()).toEqual([
      "ada: link made",
      "ada: link made",
      "ada: person added",
      "ada: person added",
      "bob: password chosen",
    ]);
  });

  it("can change the password only with the current password, which ends sessions and links", async () => {
    const { accounts, sessions } = await people();
    const ada = await accounts.setUp("ada", "kept");
    const secret = await sessions.begin(ada.id);
    const link = await accounts.invite("ada", ada.id);
    const late = accounts.changePassword(ada.id, "kept before", "stolen");
    await expect(late).rejects.toThrow("The password was changed in the meantime");
    expect(await accounts.find("ada")).toMatchObject({ password: "kept" });
    expect([await sessions.find(secret), await accounts.invited(link)]).toEqual([ada, ada]);
    await accounts.changePassword(ada.id, "kept", "next");
    expect(await accounts.find("ada")).toMatchObject({ password: "next" });
    expect([await sessions.find(secret), await accounts.invited(link)]).toEqual([undefined, undefined]);
  });

  it("have sessions that end after a day without use, after a week, and at the sign-out", async () => {
    const { accounts, sessions } = await people();
    const ada = await accounts.setUp("ada", "kept");
    const secret = await sessions.begin(ada.id);
    expect(await sessions.find(secret)).toEqual(ada);
    expect(await sessions.find(`${secret}x`)).toBeUndefined();
    clock += 23 * hour;
    expect(await sessions.find(secret)).toEqual(ada);
    clock += 23 * hour;
    expect(await sessions.find(secret)).toEqual(ada); // Each use extends the session by a day.
    clock += 24 * hour;
    expect(await sessions.find(secret)).toBeUndefined();
    const other = await sessions.begin(ada.id);
    for (let i = 0; i < 8; i++) {
      clock += 20 * hour;
      await sessions.find(other);
    }
    expect(await sessions.find(other)).toEqual(ada);
    clock += 9 * hour;
    expect(await sessions.find(other)).toBeUndefined();
    const last = await sessions.begin(ada.id);
    await sessions.end(last);
    expect(await sessions.find(last)).toBeUndefined();
  });

  it("can list and end only their own sessions, one session or all others", async () => {
    const { accounts, sessions } = await people();
    const ada = await accounts.setUp("ada", "kept");
    const eve = await accounts.join(await accounts.add("ada", { name: "eve", role: "owner" }), "kept");
    const old = await sessions.begin(ada.id);
    clock += 25 * hour;
    const first = await sessions.begin(ada.id);
    const second = await sessions.begin(ada.id);
    const third = await sessions.begin(ada.id);
    const eves = await sessions.begin(eve.id);
    const ids = (await sessions.list(ada.id)).map(({ id }) => id);
    expect(ids.toSorted()).toEqual([first, second, third].map(sessionId).toSorted());
    expect(ids).not.toContain(sessionId(old));
    await sessions.endOne(eve.id, sessionId(first));
    expect(await sessions.find(first)).toEqual(ada);
    await sessions.endOne(ada.id, sessionId(first));
    expect(await sessions.find(first)).toBeUndefined();
    await sessions.endOthers(ada.id, third);
    expect((await sessions.list(ada.id)).map(({ id }) => id)).toEqual([sessionId(third)]);
    expect(await sessions.find(eves)).toEqual(eve);
  });

  it("can list their hundred newest sessions, and can end all other sessions", async () => {
    const { accounts, sessions } = await people();
    const ada = await accounts.setUp("ada", "kept");
    const oldest = await sessions.begin(ada.id);
    clock += 60_000;
    for (let i = 0; i < 99; i++) await sessions.begin(ada.id);
    clock += 60_000;
    const own = await sessions.begin(ada.id);
    const ids = (await sessions.list(ada.id)).map(({ id }) => id);
    expect([ids.length, ids[0], ids.includes(sessionId(oldest))]).toEqual([100, sessionId(own), false]);
    await sessions.endOthers(ada.id, own);
    expect([await sessions.find(oldest), await sessions.find(own)]).toEqual([undefined, ada]);
  });

  it("have the usage of keys counted by day, and counts that cannot be written are kept", async () => {
    const database = opened(await newDatabase());
    const errors: (string | undefined)[] = [];
    const time = new FakeClock(Date.UTC(2030, 0, 1));
    const recorder = recordUsage({
      database,
      clock: time,
      writeMs: 24 * hour,
      onError: (error) => errors.push(error?.message),
    });
    await database.run((db) => db.schema.alterTable("key_usage").renameTo("away").execute());
    recorder.note("k1", { requests: 1, failed: 0, audioMs: 1500.4 });
    recorder.note("k1", { requests: 1, failed: 1, audioMs: 0 });
    await time.advance(24 * hour);
    await eventually("an error of the database", () => errors.length > 0);
    await database.run((db) => db.schema.alterTable("away").renameTo("key_usage").execute());
    recorder.note("k1", { requests: 1, failed: 0, audioMs: 10 });
    await recorder.close();
    expect(await listUsage(database, "2030-01-01")).toEqual([
      { keyId: "k1", day: "2030-01-01", requests: 2, failed: 1, audioMs: 1500 },
      { keyId: "k1", day: "2030-01-02", requests: 1, failed: 0, audioMs: 10 },
    ]);
    expect(await listUsage(database, "2030-01-02")).toHaveLength(1);
  });
});

describe.each(kinds)("a database in %s from before the first owner was recorded", (_, newDatabase) => {
  /** The migrations of the last release that does not record the first owner. */
  const earlier = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < "009-set-up"));

  /**
   * Returns whether the database counts as set up after the migration, with the users that `people` creates.
   */
  async function isSetUpAfter(people: (accounts: Accounts, database: Database) => Promise<unknown>) {
    const current = opened(await newDatabase());
    const accounts = createAccounts(current, () => now);
    await people(accounts, current);
    const location = await newDatabase();
    const { dialect } = isPostgresUrl(location) ? postgresBackend(location) : sqliteBackend(location);
    const oldDatabase = new Kysely<Tables>({ dialect });
    const provider = { getMigrations: async () => earlier };
    await new Migrator({ db: oldDatabase, provider }).migrateToLatest();
    for (const table of ["users", "audit"] as const) {
      const rows = await current.run((db) => db.selectFrom(table).selectAll().execute());
      await oldDatabase.insertInto(table).values(rows).execute();
    }
    await oldDatabase.destroy();
    return createAccounts(opened(location), () => now).isSetUp();
  }
  const demote = (database: Database) =>
    database.run((db) => db.updateTable("users").set({ role: "viewer" }).execute());

  it("counts as set up if it has or had an owner", async () => {
    const setUp = (accounts: Accounts) => accounts.setUp("ada", "kept");
    const byGroup = (accounts: Accounts) => accounts.add("ada", { name: "ada", role: "owner" });
    expect(await isSetUpAfter(setUp)).toBe(true);
    for (const makeOwner of [setUp, byGroup]) {
      const isSetUp = isSetUpAfter((accounts, database) => makeOwner(accounts).then(() => demote(database)));
      expect(await isSetUp).toBe(true);
    }
    const bob = { name: "bob", role: "member", team: "owner" } as const;
    expect(await isSetUpAfter((accounts) => accounts.add("bob", bob))).toBe(false);
  });
});

describe.each(kinds)("sentences in %s", (_, newDatabase) => {
  it("are stored only for teams that enable this, and are deleted when a team disables it", async () => {
    const database = opened(await newDatabase());
    const store = createOovStore(database);
    const setting = createSentenceSetting(database, () => now);
    const table = createLexiconTable(database, () => now);
    const add = (team: string | undefined, sentence: string | undefined) =>
      store.add([
        {
          ...{ keyId: `of ${team}`, team, language: "eng", word: "zorblax", sentence },
          ...{ count: 1, firstSeen: now, lastSeen: now },
        },
      ]);
    const sentencesOf = async (team: string) => (await table.review(team, 9)).map((word) => word.sentence);
    await setting.turn("ada", "blue", true);
    await setting.turn("ada", "", true);
    for (const team of ["blue", "red", undefined]) await add(team, "A zorblax.");
    await add("blue", undefined);
    expect(await sentencesOf("blue")).toEqual(["A zorblax."]);
    expect(await sentencesOf("")).toEqual(["A zorblax."]);
    // Team red has not enabled sentences, so the sentence of the queued word is dropped.
    expect(await sentencesOf("red")).toEqual([undefined]);
    expect([...(await table.load()).withSentences].toSorted()).toEqual(["", "blue"]);
    const revision = await table.revision();
    // The two changes may run in any order, and no sentence remains.
    await Promise.all([setting.turn("ada", "blue", false), add("blue", "Another zorblax.")]);
    expect(await setting.isOn("blue")).toBe(false);
    expect(await sentencesOf("blue")).toEqual([undefined]);
    expect(await sentencesOf("")).toEqual(["A zorblax."]);
    expect(await table.revision()).toBeGreaterThan(revision);
  });
});

describe.each(kinds)("the audit log in %s", (_, newDatabase) => {
  const day = 24 * hour;
  const write = (database: Database, at: number, subject: string) =>
    database.run((db) => writeAudit(db, { actor: "ada", action: "signed in", subject }, at));

  it("is read in pages, also if several entries have the same time", async () => {
    const database = opened(await newDatabase());
    for (let i = 0; i < 7; i++) await write(database, now + Math.floor(i / 4), `${i}`);
    const subjects: string[] = [];
    for (let page = await listAudit(database, 3); page.length > 0; ) {
      subjects.push(...page.map(({ subject }) => subject));
      page = await listAudit(database, 3, page.at(-1));
    }
    expect(subjects.slice(0, 3).toSorted()).toEqual(["4", "5", "6"]);
    expect(subjects.slice(3).toSorted()).toEqual(["0", "1", "2", "3"]);
  });

  it("deletes entries after the retention time, at the start and later", async () => {
    const database = opened(await newDatabase());
    const fake = new FakeClock(now);
    for (const age of [31, 30, 29]) await write(database, now - age * day, `${age}`);
    const remaining = async () => (await listAudit(database, 10)).map(({ subject }) => subject);
    const errors: unknown[] = [];
    const stop = limitAudit({ database, days: 30, clock: fake, onError: (error) => errors.push(error) });
    await eventually("the deletion of the oldest entry", async () => (await remaining()).join() === "29,30");
    await fake.advance(hour);
    await eventually("the deletion of the next entry", async () => (await remaining()).join() === "29");
    await stop();
    expect([errors, fake.timers]).toEqual([[], 0]);
  });
});

describe.each(kinds)("a lexicon in %s", (_, newDatabase) => {
  it("imports all words and replaces existing words, or imports no word if the limit would be exceeded", async () => {
    const database = opened(await newDatabase());
    const table = createLexiconTable(database, () => now);
    const entry = (word: string, phonemes: string) => ({ language: "eng", word, phonemes });
    await table.save("ada", { team: "blue", ...entry("zorblax", "z") });
    await table.saveAll("ada", "blue", [entry("zorblax", "s"), entry("quux", "k")]);
    const saved = await table.list("blue");
    expect(saved.map(({ word, phonemes }) => `${word} ${phonemes}`)).toEqual(["quux k", "zorblax s"]);
    const revision = await table.revision();
    const many = Array.from({ length: 4_999 }, (_, i) => entry(`w${"abcdefghij"[i % 10]}${i}`, "b"));
    await expect(table.saveAll("ada", "blue", many)).rejects.toThrow("may have 5000 words");
    expect(await table.list("blue")).toEqual(saved);
    expect(await table.revision()).toBe(revision);
    await table.saveAll("ada", "blue", many.slice(1));
    await table.save("ada", { team: "blue", ...entry("quux", "g") }); // A full lexicon still accepts changes of its words.
    await expect(table.save("ada", { team: "blue", ...entry("more", "m") })).rejects.toThrow(LexiconError);
    expect(await table.list("red")).toEqual([]);
    expect((await listAudit(database, 10)).filter(({ action }) => action === "words imported")).toMatchObject(
      [
        { actor: "ada", subject: "blue", detail: expect.stringMatching(/^(4998|2) words$/) },
        { detail: expect.stringMatching(/^(4998|2) words$/) },
      ],
    );
  });
});

describe("an unavailable PostgreSQL is reported with a message", () => {
  const use = (database: Database) => createKeyTable(database, () => now).revision();

  it("when it is stopped, and is used again after its restart", async () => {
    const database = opened(await postgres.newDatabase());
    expect(await use(database)).toBe(1);
    await postgres.kill();
    await expect(use(database)).rejects.toThrow(
      /^the database postgres:\/\/127\.0\.0\.1\/tts\d+ (is|cannot)/,
    );
    await postgres.restart();
    expect(await use(database)).toBe(1);
  });

  it("when it stops between two queries of one transaction, and the process continues", async () => {
    const database = opened(await postgres.newDatabase());
    const change = database.run((db) =>
      db.transaction().execute(async (trx) => {
        await trx.selectFrom("revisions").selectAll().execute();
        await postgres.kill();
        await settle(); // The connection ends while no query is in progress.
        await trx.selectFrom("revisions").selectAll().execute();
      }),
    );
    await expect(change).rejects.toThrow();
    await postgres.restart();
    expect(await database.run((db) => db.selectFrom("revisions").selectAll().execute())).not.toEqual([]);
  });

  it("when it rejects the password, and the password file is read again", async () => {
    const url = await postgres.newDatabase();
    const wrong = url.replace(encodeURIComponent(postgres.password), "not-the-one");
    const refused = use(opened(wrong));
    await expect(refused).rejects.toThrow("rejected this user or password");
    await expect(refused).rejects.not.toThrow("not-the-one");
    const passwordFile = join(folder, "password");
    writeFileSync(passwordFile, "not-yet\n");
    const database = openDatabase(wrong, { passwordFile });
    open.push(database);
    await expect(use(database)).rejects.toThrow("rejected this user or password");
    writeFileSync(passwordFile, `${postgres.password}\n`);
    expect(await use(database)).toBe(1);
  });

  it("when the database does not exist", async () => {
    const url = `${await postgres.newDatabase()}-away`;
    await expect(use(opened(url))).rejects.toThrow("does not exist on the server; create it");
  });

  it("when its tables are missing, and the tables are recreated", async () => {
    const database = opened(await postgres.newDatabase());
    await use(database);
    await database.run(async (db) => {
      await sql`drop schema public cascade`.execute(db);
      await sql`create schema public`.execute(db);
    });
    await expect(use(database)).rejects.toThrow("failed: relation");
    expect(await use(database)).toBe(1);
  });
});
