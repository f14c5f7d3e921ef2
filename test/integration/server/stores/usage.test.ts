import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type Database, openDatabase } from "../../../../server/store/database/database.ts";
import { dayOf, recordUsage } from "../../../../server/store/usage.ts";
import { listVoiceUsage, type VoiceUsage } from "../../../../server/store/voice-usage.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { addSignedInUser, newKey, Visitor } from "../../../support/server/visitor.ts";

const password = "four plain words here";

const folder = folderOfTests("usage");
writeFileSync(join(folder, "setup"), "setup");

let postgres: TestPostgres;
let model: ScriptedModel;

beforeAll(async () => {
  postgres = await startPostgres();
  model = await startScriptedModel(speakTone(0.5));
});
afterAll(async () => {
  await model.close();
  await postgres.stop();
});

describe.each([
  ["SQLite", async () => join(mkdtempSync(join(folder, "db-")), "svc-tts.db")],
  ["PostgreSQL", () => postgres.newDatabase()],
])("usage in %s", (_, newDatabase) => {
  let databaseUrl: string;
  let database: Database;
  let clock: FakeClock;
  beforeEach(async () => {
    databaseUrl = await newDatabase();
    database = openDatabase(databaseUrl);
    clock = new FakeClock();
  });
  afterEach(() => database.close());

  async function start(): Promise<{ api: TestApi; owner: Visitor }> {
    const dashboard = { url: "http://127.0.0.1:8000", setupFile: join(folder, "setup") };
    const api = await startTestApi(model.url, { database: databaseUrl, dashboard }, { clock });
    onTestFinished(() => api.stop());
    const owner = new Visitor(api.url);
    await owner.post("/dashboard/setup", { token: "setup", name: "boss", password });
    return { api, owner };
  }

  function rowsOf(team?: string): Promise<VoiceUsage[]> {
    return listVoiceUsage(database, { since: "2000-01-01", team }, 1000);
  }

  it("is counted by key, voice and day, and is visible only to the team of the key", async () => {
    const { api, owner } = await start();
    const blue = await newKey(owner, "app", { team: "blue" });
    const red = await newKey(owner, "other", { team: "red" });
    await eventuallyOn(clock, "the server to accept the keys", async () => {
      const answers = [blue, red].map((key) => api.post("{", { authorization: `Bearer ${key}` }));
      return (await Promise.all(answers)).every(({ status }) => status === 400);
    });
    await speak(api, blue, { text: "Hello \u{1F600}." });
    await speak(api, blue, { text: "Hello." });
    await speak(api, blue, { text: "Hello.", audioFormat: "wav" }, "application/json");
    await speak(api, blue, { text: "Hello.", speaker: "luna", modelId: "arcana" });
    await speak(api, blue, { text: "Hello.", speaker: "no-such-voice" });
    model.script = (call) => call.refuse(500, {});
    await speak(api, red, { text: "Hello." });
    model.script = speakTone(0.5);
    await eventuallyOn(clock, "the usage in the database", async () => (await rowsOf()).length === 3);
    const member = await addSignedInUser(owner, api.url, {
      name: "ada",
      role: "member",
      team: "blue",
      password,
    });
    const page = await member.get("/dashboard/usage");
    expect(page.text).toContain("License: <strong>valid</strong>");
    expect(page.text).toMatch(/<th scope="row">mist<\/th><td>reachable/);
    expect(page.text).toMatch(/aria-label="Requests per day from \w+ \d+, \d+ to \w+ \d+, \d+, at most 4"/);
    expect(page.text).not.toContain("other");
    const [head = "", ...lines] = (await member.get("/dashboard/usage.csv?days=7")).text.trim().split("\r\n");
    expect(head.split(",")).toContain("first_audio_mean_ms");
    const today = dayOf(clock.nowMs());
    expect(lines.toSorted()).toEqual([
      expect.stringMatching(`^${today},app,blue,arcana,luna,1,0,6,0.5,\\d+,\\d+$`),
      expect.stringMatching(`^${today},app,blue,mist,abbie,3,0,20,1.5,\\d+,\\d+$`),
    ]);
    const all = await owner.get("/dashboard/usage.csv");
    expect(all.headers.get("content-disposition")).toBe('attachment; filename="svc-tts-usage.csv"');
    expect(all.text).toContain(`${today},other,red,mist,abbie,1,1,0,0,,\r\n`);
    expect((await new Visitor(api.url).get("/dashboard/usage.csv")).status).toBe(303);
  });

  it.each(["audio/pcm", "application/json"])(
    "has the characters of a successful request once, and none of earlier rejected requests, for %s",
    async (accept) => {
      const { api, owner } = await start();
      const key = await newKey(owner, "app", { team: "blue" });
      await eventuallyOn(clock, "the server to accept the key", async () => {
        return (await api.post("{", { authorization: `Bearer ${key}` })).status === 400;
      });
      const text = { text: "Hello.", audioFormat: "pcm" };
      for (const status of [500, 503, 429]) {
        model.script = (call) => call.refuse(status, {});
        await speak(api, key, text, accept);
      }
      model.script = speakTone(0.5);
      await speak(api, key, text, accept);
      await eventuallyOn(
        clock,
        "the usage in the database",
        async () => (await rowsOf("blue"))[0]?.requests === 4,
      );
      expect(await rowsOf("blue")).toMatchObject([{ requests: 4, failed: 3, characters: 6, audioMs: 500 }]);
    },
  );

  it("is exported without the oldest rows if it exceeds the limit of a file", async () => {
    const { owner } = await start();
    const [today, before] = [dayOf(clock.nowMs()), dayOf(clock.nowMs() - 86_400_000)];
    await database.run((db) =>
      sql`insert into voice_usage
        with recursive n(i) as (select 0 union all select i + 1 from n where i < 100000)
        select case i when 0 then ${sql.lit(today)} else ${sql.lit(before)} end, 'k' || i, 'z', '', 'mist', 'abbie',
          1, 0, 1, 1, 0, 0, 0 from n`.execute(db),
    );
    const limited = await owner.get("/dashboard/usage.csv");
    const lines = limited.text.trim().split("\r\n").slice(1);
    expect(lines).toHaveLength(100_000);
    expect(lines[0]).toContain(`${today},z,`);
    expect(limited.headers.get("content-disposition")).toContain('"svc-tts-usage-newest-100000-rows.csv"');
    expect((await owner.get("/dashboard/usage")).text).toContain("the newest 100,000 of 100,001 rows");
  });

  it("is added up over replicas, with the longest time to first audio, and is deleted after 400 days", async () => {
    const recorder = () =>
      recordUsage({
        database,
        clock,
        onError: (error) => expect(error).toBeUndefined(),
      });
    const use = { requests: 1, failed: 0, audioMs: 1000 };
    const voice = { key: "app", team: "blue", model: "mist", voice: "abbie", characters: 5, timed: 1 };
    const [first, second] = [recorder(), recorder()];
    for (const [one, ms] of [
      [first, 300],
      [second, 100],
      [second, 200.6],
    ] as const) {
      one.note("k1", use, { ...use, ...voice, firstAudioMs: ms, longestFirstAudioMs: ms });
    }
    await Promise.all([first.close(), second.close()]);
    expect(await rowsOf("red")).toEqual([]);
    expect(await rowsOf("blue")).toEqual([
      {
        ...{ day: "2030-01-01", keyId: "k1", key: "app", team: "blue", model: "mist", voice: "abbie" },
        ...{ requests: 3, failed: 0, characters: 15, audioMs: 3000 },
        ...{ timed: 3, firstAudioMs: 601, longestFirstAudioMs: 300 },
      },
    ]);
    await clock.advance(401 * 86_400_000);
    const later = recorder();
    later.note("k1", use);
    await later.close();
    expect(await rowsOf()).toEqual([]);
  });
});

async function speak(api: TestApi, key: string, body: object, accept = "audio/pcm"): Promise<void> {
  const answer = await api.post({ speaker: "abbie", ...body }, { authorization: `Bearer ${key}`, accept });
  await answer.arrayBuffer();
}
