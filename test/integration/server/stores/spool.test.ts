import { mkdtempSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { voices } from "../../../../config/contract/voices.ts";
import { openDatabase } from "../../../../server/store/database/database.ts";
import { eventually } from "../../../support/eventually.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { routeTo, startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";
import { type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";
import {
  makeTierFiles,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../../support/server/tier-process.ts";

const clock = new FakeClock();
const key = "a-key-of-the-environment";
const folder = folderOfTests("spool");

let postgres: TestPostgres;
let model: ScriptedModel;
let files: TierFiles;
let databaseUrl: string;
let spool: string;
let api: TierProcess | undefined;

beforeAll(async () => {
  postgres = await startPostgres();
  files = await makeTierFiles();
  model = await startScriptedModel(async (call) => {
    await call.head(16_000);
    await call.tone(1_600, 16_000);
    await call.send({ kind: "oovs", words: [call.invocation.text] });
    await call.end(1_600);
  });
  files.route({ mist: routeTo(model.url) });
});
beforeEach(async () => {
  databaseUrl = await postgres.newDatabase();
  spool = mkdtempSync(join(folder, "spool-"));
});
afterEach(async () => {
  await api?.kill("SIGKILL");
  api = undefined;
});
afterAll(async () => {
  await model.close();
  await postgres.stop();
  files.remove();
});

/**
 * Starts an API tier in a separate process, which a test can kill. It writes to the database every five
 * seconds.
 */
async function startProcess(): Promise<TierProcess> {
  const environment = { SVC_TTS_API_KEY: key, SVC_TTS_DATABASE: databaseUrl, SVC_TTS_SPOOL_DIR: spool };
  api = await startTierProcess("api", files, environment);
  return api;
}

/** Starts an API tier with the same database and spool in this process, on the test's clock. */
function start(): Promise<TestApi> {
  const settings = { voices, apiKey: key, database: databaseUrl, spoolFolder: spool };
  return startTestApi({ mist: routeTo(model.url) }, settings, { clock });
}

/** Sends a request, and reads the whole response. Returns the status. */
async function speak({ url }: { readonly url: string }, text: string): Promise<number> {
  const answer = await fetch(`${url}/v1/svc-tts`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "audio/pcm",
      connection: "close",
    },
    body: JSON.stringify({ modelId: "mist", speaker: "alan", text, saveOovs: true }),
  });
  expect((await answer.arrayBuffer()).byteLength).toBe(3_200);
  return answer.status;
}

/** Returns the rows of the database as `word count`. */
async function storedWords(): Promise<string[]> {
  const database = openDatabase(databaseUrl);
  const rows = database.run((db) =>
    db.selectFrom("oovs").select(["word", "count"]).orderBy("word").execute(),
  );
  return (await rows.finally(() => database.close())).map(({ word, count }) => `${word} ${count}`);
}

function spooled(): number {
  return readdirSync(spool).reduce(
    (sum, name) => sum + readFileSync(join(spool, name), "utf8").split("\n").length - 1,
    0,
  );
}

describe("out-of-vocabulary words", () => {
  it("wait on the disk while PostgreSQL is unavailable, and the next process stores the words of a killed process", async () => {
    const first = await start();
    expect(await speak(first, "before")).toBe(200);
    await eventuallyOn(
      clock,
      "the first word in the database",
      async () => (await storedWords()).length === 1,
    );
    await postgres.kill();
    expect(await speak(first, "zorblax")).toBe(200);
    await first.stop();
    expect(spooled()).toBe(1);
    const second = await startProcess();
    for (let i = 0; i < 2; i++) expect(await speak(second, "zorblax")).toBe(200);
    await eventually("three words on the disk", () => spooled() === 3);
    await second.kill("SIGKILL");
    const third = await start();
    expect(await speak(third, "quux")).toBe(200);
    await postgres.restart();
    await eventuallyOn(clock, "all words in the database", async () => (await storedWords()).length === 3);
    expect(await storedWords()).toEqual(["before 1", "quux 1", "zorblax 3"]);
    await eventuallyOn(clock, "an empty spool", () => readdirSync(spool).length === 0);
    await third.stop();
  });

  it("are stored although the disk is full, and requests are served", async () => {
    for (let i = 1; i < 100; i++)
      symlinkSync("/dev/full", join(spool, `words-${String(i).padStart(8, "0")}.jsonl`));
    const running = await startProcess();
    const statuses = await Promise.all(Array.from({ length: 20 }, () => speak(running, "zorblax")));
    expect(new Set(statuses)).toEqual(new Set([200]));
    await eventually("the words in the database", async () => (await storedWords())[0] === "zorblax 20");
    for (const message of [
      "the spool of out-of-vocabulary words cannot be written; the words stay in memory",
      "ENOSPC",
    ])
      await eventually(`the log message ${message}`, () => running.said().includes(message), {
        seen: running.said,
      });
  });
});
