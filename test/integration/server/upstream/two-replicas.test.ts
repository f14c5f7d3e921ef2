/**
 * Tests two API tiers with one PostgreSQL: a change at one applies to the other, and clients do not notice
 * the end of one.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { ApiSettings } from "../../../../server/start/api-settings.ts";
import { eventually } from "../../../support/eventually.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { newKey, Visitor } from "../../../support/server/visitor.ts";
import { connectV1 } from "../../../support/sockets/v1-client.ts";

const clock = new FakeClock();
const folder = folderOfTests("two");
const word = "zorblax";
/** The number of requests of clients while PostgreSQL is unavailable. */
const spokenMeanwhile = 200;

let postgres: TestPostgres;
let model: ScriptedModel;
let [one, other]: TestApi[] = [];
let owner: Visitor;
let start: (settings?: Partial<ApiSettings>) => Promise<TestApi>;

beforeAll(async () => {
  postgres = await startPostgres();
  model = await startScriptedModel(speakTone(0.1));
  writeFileSync(join(folder, "setup"), "the-setup-token");
  const database = await postgres.newDatabase();
  const dashboard = { url: "http://127.0.0.1", setupFile: join(folder, "setup") };
  start = (settings = {}) => startTestApi(model.url, { database, dashboard, ...settings }, { clock });
  [one, other] = await Promise.all([start(), start()]);
  owner = new Visitor(one.url);
  const person = { token: "the-setup-token", name: "ada", password: "four plain words here" };
  await owner.post("/dashboard/setup", person);
});
afterAll(async () => {
  await Promise.all([one?.stop(), other?.stop()]);
  await model.close();
  await postgres.stop();
});

async function statusAt(api: TestApi | undefined, key: string): Promise<number | undefined> {
  const headers = { authorization: `Bearer ${key}`, accept: "audio/pcm" };
  const answer = await api?.post({ speaker: "abbie", text: `The ${word}.` }, headers);
  await answer?.arrayBuffer();
  return answer?.status;
}

/** Waits until both servers respond to requests with the key with this status. */
async function answeredByBoth(key: string, status: number): Promise<void> {
  await eventuallyOn(clock, `both answer the key ${status}`, async () => {
    const statuses = await Promise.all([one, other].map((api) => statusAt(api, key)));
    return statuses.every((answered) => answered === status);
  });
}

it("a key that is created or revoked at one replica is accepted or refused at the other", async () => {
  const key = await newKey(owner, "app");
  await eventuallyOn(clock, "a key is known", async () => (await statusAt(other, key)) === 200);
  await owner.post("/dashboard/keys/revoke", { key: "app" });
  await answeredByBoth(key, 401);
});

it("a word that is written at one is spoken so at the other, unless a context has its own pronunciation", async () => {
  const key = await newKey(owner, "speaker");
  await eventuallyOn(clock, "the key is known", async () => (await statusAt(other, key)) === 200);
  await owner.get("/dashboard/words");
  await owner.upload("/dashboard/words/import", { team: "" }, lexicon);
  const spoken = async () => {
    await statusAt(other, key);
    return model.calls.at(-1)?.invocation.lexicon?.[word] !== undefined;
  };
  await eventuallyOn(clock, "the word is spoken as written", spoken);
  const socket = await connectV1(other?.url ?? "", "json", { key });
  const customLexicon = [{ spelling: word, pronunciation: '" w V n' }];
  socket.send("a", { start: { speaker: "abbie", text: `The ${word}.`, customLexicon } });
  await socket.ended("a");
  expect(model.calls.at(-1)?.invocation.lexicon).toEqual({ [word]: "w1An" });
  socket.client.socket.terminate();
});

it("clients with a known key notice no outage of PostgreSQL, and changes after it take effect", async () => {
  const key = await newKey(owner, "listener");
  await answeredByBoth(key, 200);
  const statuses = new Map<number | undefined, number>();
  let speaking = true;
  const speak = async (api: TestApi | undefined) => {
    while (speaking) {
      const status = await statusAt(api, key);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const callers = [one, one, other, other].map(speak);
  await postgres.kill();
  const page = await owner.get("/dashboard/keys");
  expect(page.status, "the dashboard says that it has no database").toBe(503);
  const enough = (statuses.get(200) ?? 0) + spokenMeanwhile;
  await eventually("much is spoken meanwhile", () => (statuses.get(200) ?? 0) >= enough);
  await postgres.restart();
  await eventually("the dashboard is back", async () => {
    return (await owner.get("/dashboard/keys")).status === 200;
  });
  speaking = false;
  await Promise.all(callers);
  expect([...statuses.keys()]).toEqual([200]);
  const fresh = await newKey(owner, "after");
  await eventuallyOn(clock, "a key made after it", async () => (await statusAt(other, fresh)) === 200);
});

it("a replica that starts while PostgreSQL is unavailable leaves requests to the others, unless it has keys of its own", async () => {
  const key = await newKey(owner, "early");
  await postgres.kill();
  const [fresh, withFile] = await Promise.all([start({ keysFile: undefined }), start()]);
  onTestFinished(async () => void (await Promise.all([fresh.stop(), withFile.stop()])));
  const ready = async ({ url }: TestApi) => (await fetch(`${url}/ready`)).status;
  expect(await ready(withFile)).toBe(200);
  expect(await ready(fresh)).toBe(503);
  expect(await statusAt(fresh, key)).toBe(503);
  await postgres.restart();
  await eventuallyOn(clock, "it is ready", async () => (await ready(fresh)) === 200);
  expect(await statusAt(fresh, key)).toBe(200);
});

const lexicon = `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="x-svc-tts" xml:lang="en">
  <lexeme><grapheme>${word}</grapheme><phoneme>z1Orbl2@ks</phoneme></lexeme>
</lexicon>
`;
