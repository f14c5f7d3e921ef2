import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../server/store/database.ts";
import { eventually } from "../../support/eventually.ts";
import { startPostgres, type TestPostgres } from "../../support/postgres.ts";
import { type ScriptedModel, startScriptedModel } from "../../support/scripted-model.ts";
import {
  makeTierFiles,
  routeTo,
  startTierProcess,
  type TierFiles,
  type TierProcess,
} from "../../support/tier-process.ts";

const key = "a-key-of-the-environment";

let postgres: TestPostgres;
let model: ScriptedModel;
let files: TierFiles;
let place: string;
let spool: string;
let api: TierProcess;

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
  place = await postgres.newDatabase();
  spool = mkdtempSync(join(tmpdir(), "svc-tts-spool-"));
});
afterEach(async () => {
  await api.kill("SIGKILL");
  rmSync(spool, { recursive: true });
});
afterAll(async () => {
  await model.close();
  await postgres.stop();
  files.remove();
});

function start(): Promise<TierProcess> {
  const environment = { SVC_TTS_API_KEY: key, SVC_TTS_DATABASE: place, SVC_TTS_SPOOL_DIR: spool };
  return startTierProcess("api", files, environment);
}

/** @returns the status, once everything was heard. */
async function speak(text: string): Promise<number> {
  const answer = await fetch(`${api.url}/v1/svc-tts`, {
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

/** What the database has, as `word count`. */
async function kept(): Promise<string[]> {
  const database = openDatabase(place);
  try {
    const rows = await database.run((db) =>
      db.selectFrom("oovs").select(["word", "count"]).orderBy("word").execute(),
    );
    return rows.map(({ word, count }) => `${word} ${count}`);
  } finally {
    await database.close();
  }
}

function spooled(): number {
  return readdirSync(spool).reduce(
    (sum, name) => sum + readFileSync(join(spool, name), "utf8").split("\n").length - 1,
    0,
  );
}

describe("unknown words", () => {
  it("are kept while PostgreSQL is away, and by the process that comes after one that was killed", async () => {
    api = await start();
    expect(await speak("before")).toBe(200);
    await eventually("the first is there", async () => (await kept()).length === 1);
    await postgres.kill();
    for (let i = 0; i < 3; i++) expect(await speak("zorblax")).toBe(200);
    await eventually("they are on the disk", async () => spooled() === 3);
    await api.kill("SIGKILL");
    api = await start();
    expect(await speak("quux")).toBe(200);
    await postgres.restart();
    await eventually("all are there", async () => (await kept()).length === 3);
    expect(await kept()).toEqual(["before 1", "quux 1", "zorblax 3"]);
    await eventually("nothing waits", async () => readdirSync(spool).length === 0);
  });

  it("cost no speech while the disk is full, and are not lost by it", async () => {
    for (let i = 1; i < 100; i++)
      symlinkSync("/dev/full", join(spool, `words-${String(i).padStart(8, "0")}.jsonl`));
    api = await start();
    const statuses = await Promise.all(Array.from({ length: 20 }, () => speak("zorblax")));
    expect(new Set(statuses)).toEqual(new Set([200]));
    await eventually("they are there", async () => (await kept())[0] === "zorblax 20");
    expect(api.said()).toContain("the spool of words cannot be written; they wait in memory");
    expect(api.said()).toContain("ENOSPC");
  });
});
