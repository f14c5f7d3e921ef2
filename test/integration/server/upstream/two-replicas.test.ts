/**
 * Tests two API replicas with one PostgreSQL: a change at one replica applies to the other replica, and an
 * outage of PostgreSQL does not affect requests.
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
/** The clients send this many requests while PostgreSQL is unavailable. */
const requestsDuringOutage = 200;

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

/** Waits until both replicas respond with the status to a request with the key. */
async function untilStatusOfBoth(key: string, status: number): Promise<void> {
  await eventuallyOn(clock, `status ${status} of both replicas`, async () => {
    const statuses = await Promise.all([one, other].map((api) => statusAt(api, key)));
    return statuses.every((other) => other === status);
  });
}

it("a key that one replica creates or revokes is accepted or rejected by the other replica", async () => {
  const key = await newKey(owner, "app");
  await eventuallyOn(
    clock,
    "the other replica to accept the key",
    async () => (await statusAt(other, key)) === 200,
  );
  await owner.post("/dashboard/keys/revoke", { key: "app" });
  await untilStatusOfBoth(key, 401);
});

it("a lexicon word that one replica saves applies at the other replica, except in a context with its own lexicon", async () => {
  const key = await newKey(owner, "speaker");
  await eventuallyOn(
    clock,
    "the other replica to accept the key",
    async () => (await statusAt(other, key)) === 200,
  );
  await owner.get("/dashboard/words");
  await owner.upload("/dashboard/words/import", { team: "" }, lexicon);
  const usesLexicon = async () => {
    await statusAt(other, key);
    return model.calls.at(-1)?.invocation.lexicon?.[word] !== undefined;
  };
  await eventuallyOn(clock, "the saved pronunciation in an invocation", usesLexicon);
  const socket = await connectV1(other?.url ?? "", "json", { key });
  const customLexicon = [{ spelling: word, pronunciation: '" w V n' }];
  socket.send("a", { start: { speaker: "abbie", text: `The ${word}.`, customLexicon } });
  await socket.ended("a");
  expect(model.calls.at(-1)?.invocation.lexicon).toEqual({ [word]: "w1An" });
  socket.client.socket.terminate();
});

it("requests with a known key succeed during an outage of PostgreSQL, and changes after the outage apply", async () => {
  const key = await newKey(owner, "listener");
  await untilStatusOfBoth(key, 200);
  const statuses = new Map<number | undefined, number>();
  let isRunning = true;
  const speak = async (api: TestApi | undefined) => {
    while (isRunning) {
      const status = await statusAt(api, key);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const clients = [one, one, other, other].map(speak);
  await postgres.kill();
  const page = await owner.get("/dashboard/keys");
  expect(page.status, "the dashboard needs the database").toBe(503);
  const enough = (statuses.get(200) ?? 0) + requestsDuringOutage;
  await eventually("enough requests during the outage", () => (statuses.get(200) ?? 0) >= enough);
  await postgres.restart();
  await eventually("a successful request of the dashboard", async () => {
    return (await owner.get("/dashboard/keys")).status === 200;
  });
  isRunning = false;
  await Promise.all(clients);
  expect([...statuses.keys()]).toEqual([200]);
  const fresh = await newKey(owner, "after");
  await eventuallyOn(
    clock,
    "the other replica to accept a key that was created after the outage",
    async () => (await statusAt(other, fresh)) === 200,
  );
});

it("a replica that starts while PostgreSQL is unavailable is not ready, except with keys of a file", async () => {
  const key = await newKey(owner, "early");
  await postgres.kill();
  const [fresh, withFile] = await Promise.all([start({ keysFile: undefined }), start()]);
  onTestFinished(async () => void (await Promise.all([fresh.stop(), withFile.stop()])));
  const ready = async ({ url }: TestApi) => (await fetch(`${url}/ready`)).status;
  expect(await ready(withFile)).toBe(200);
  expect(await ready(fresh)).toBe(503);
  expect(await statusAt(fresh, key)).toBe(503);
  await postgres.restart();
  await eventuallyOn(clock, "a ready replica", async () => (await ready(fresh)) === 200);
  expect(await statusAt(fresh, key)).toBe(200);
});

const lexicon = `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="x-svc-tts" xml:lang="en">
  <lexeme><grapheme>${word}</grapheme><phoneme>z1Orbl2@ks</phoneme></lexeme>
</lexicon>
`;
