/** Tests sockets whose API key is revoked, expires or is replaced while they are open. */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../../server/store/database/database.ts";
import { createKey } from "../../../../server/store/keys/key.ts";
import type { KeyManager } from "../../../../server/store/keys/key-manager.ts";
import { openKeyTableBook } from "../../../../server/store/keys/key-table.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import {
  type ScriptedModel,
  speakUntil,
  startScriptedModel,
} from "../../../support/server/scripted-model.ts";
import { connectSocket, type SocketClient } from "../../../support/sockets/client.ts";
import { speakWords } from "../../../support/sockets/scripted-speech.ts";
import { connectV1, type V1Client } from "../../../support/sockets/v1-client.ts";

/** The interval at which the server reads changes of the database. */
const checkMs = 2_000;
const lifetimeMs = 30_000;
const folder = folderOfTests("sockets-revoked");
const start = { speaker: "abbie", audioParameters: { audioFormat: "audio/pcm" } };

let model: ScriptedModel;
let database: string;
let clock: FakeClock;
let api: TestApi;
let key: string;
const open: SocketClient[] = [];

beforeAll(async () => {
  model = await startScriptedModel(speakWords);
});
beforeEach(async () => {
  model.calls.length = 0;
  model.script = speakWords;
  database = join(mkdtempSync(join(folder, "db-")), "svc-tts.db");
  clock = new FakeClock(Date.now());
  key = createKey();
  await change((book) => book.create(key, { name: "app", scopes: ["tts:write"] }));
  api = await startTestApi(model.url, { database }, { clock });
});
afterEach(async () => {
  for (const { socket } of open.splice(0)) socket.terminate();
  await api.stop();
});
afterAll(() => model.close());

/** Changes keys in the database of the running server. */
function change<T>(act: (book: KeyManager) => Promise<T>): Promise<T> {
  const opened = openDatabase(database);
  return act(openKeyTableBook(opened, () => clock.nowMs())).finally(() => opened.close());
}

/** Advances the clock until the server rejects requests with the key. */
async function becomesInvalid(rejected: string): Promise<void> {
  const isRejected = async () => {
    const answer = await api.post({}, { authorization: `Bearer ${rejected}` });
    await answer.arrayBuffer();
    return answer.status === 401;
  };
  await eventuallyOn(clock, "requests with the key are rejected", isRejected, checkMs);
}

async function connect(query = "", withKey = key): Promise<SocketClient> {
  const path = `/ws3?speaker=abbie&modelId=mist&audioFormat=pcm&samplingRate=8000${query}`;
  const client = await connectSocket(api.url, path, { key: withKey });
  open.push(client);
  return client;
}

async function connectContexts(authentication: "header" | "config"): Promise<V1Client> {
  const inHeader = authentication === "header";
  const client = await connectV1(api.url, "json", inHeader ? { key } : {});
  open.push(client.client);
  if (!inHeader) client.send("", { config: { authorization: `Bearer ${key}` } });
  await client.until("ready");
  return client;
}

const refused = { code: 1008, reason: "401: invalid api key" };

describe("a socket of /ws3", () => {
  it("finishes its synthesis after the revocation of its key like an HTTP stream, and is closed at the next one", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    model.script = speakUntil(released);
    const client = await connect();
    client.send({ text: "One. ", contextId: "a" });
    await client.until("chunk");
    const body = { speaker: "abbie", text: "Hello." };
    const http = await api.post(body, { authorization: `Bearer ${key}`, accept: "audio/pcm" });
    await change((book) => book.revoke("app"));
    await becomesInvalid(key);
    release();
    expect((await http.arrayBuffer()).byteLength).toBeGreaterThan(0);
    await client.until("timestamps");
    expect(client.closing).toBeUndefined();
    const calls = model.calls.length;
    client.send({ text: "Two. ", contextId: "a" });
    expect(await client.closed()).toEqual(refused);
    expect(client.sequence).toEqual(["chunk", "timestamps"]);
    expect(model.calls.length).toBe(calls);
  });

  it("is closed with text that waited while the key was revoked", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    model.script = speakUntil(released);
    const client = await connect("&segment=never");
    for (const text of ["One.", "Two."]) client.send({ text, contextId: text }, { operation: "flush" });
    await client.until("chunk");
    await change((book) => book.revoke("app"));
    await becomesInvalid(key);
    release();
    expect(await client.closed()).toEqual(refused);
    expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
    expect(model.calls.length).toBe(1);
  });

  it("is closed after the expiry of its key", async () => {
    const expiring = createKey();
    const expiresAt = clock.nowMs() + lifetimeMs;
    await change((book) => book.create(expiring, { name: "brief", scopes: ["tts:write"], expiresAt }));
    const isKnown = async () => (await api.post({}, { authorization: `Bearer ${expiring}` })).status === 400;
    await eventuallyOn(clock, "the key is known", isKnown, checkMs);
    const client = await connect("", expiring);
    client.send({ text: "One. ", contextId: "a" }, { operation: "flush" });
    await client.until("done");
    await becomesInvalid(expiring);
    client.send({ text: "Two. ", contextId: "b" });
    expect(await client.closed()).toEqual(refused);
  });

  it("speaks on after the rotation of its key until the overlap ends", async () => {
    const client = await connect();
    const fresh = createKey();
    await change((book) => book.rotate("app", fresh, { endOfOthers: clock.nowMs() + lifetimeMs }));
    const isKnown = async () => (await api.post({}, { authorization: `Bearer ${fresh}` })).status === 400;
    await eventuallyOn(clock, "the new key is known", isKnown, checkMs);
    client.send({ text: "One. ", contextId: "a" }, { operation: "flush" });
    await client.until("done");
    await becomesInvalid(key);
    client.send({ text: "Two. ", contextId: "b" });
    expect(await client.closed()).toEqual(refused);
  });
});

describe.each(["header", "config"] as const)("a socket of v1 with its key in the %s", (authentication) => {
  it("finishes the contexts that speak after the revocation of its key, rejects others, and is closed", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    model.script = speakUntil(released);
    const client = await connectContexts(authentication);
    client.send("speaking", { start: { ...start, text: "One." } });
    client.send("waiting", { start });
    await client.until("audio", "speaking");
    await change((book) => book.revoke("app"));
    await becomesInvalid(key);
    client.send("waiting", { text: "Two." });
    await client.until("error", "waiting");
    expect(client.last("error", "waiting")).toMatchObject({ kind: "unauthenticated" });
    await client.settled();
    expect(client.client.closing).toBeUndefined();
    release();
    expect(await client.closed()).toEqual({ code: 1008, reason: "401: unauthenticated" });
    expect(client.sequence("speaking")).toEqual(["started", "audio", "done"]);
    expect(client.last("error", "")).toMatchObject({
      kind: "unauthenticated",
      message: client.last("error", "waiting")?.message,
    });
    expect(model.calls.length).toBe(1);
  });

  it("does not wait for contexts without text", async () => {
    const client = await connectContexts(authentication);
    for (const contextId of ["a", "b"]) client.send(contextId, { start });
    client.send("a", { text: "One." });
    await client.until("audio", "a");
    await change((book) => book.revoke("app"));
    await becomesInvalid(key);
    client.send("b", { text: "Two." });
    expect(await client.closed()).toMatchObject({ code: 1008 });
  });
});
