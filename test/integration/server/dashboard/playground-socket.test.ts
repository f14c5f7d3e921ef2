import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { addSignedInUser, Visitor } from "../../../support/server/visitor.ts";
import { connectSocket, refusedUpgrade } from "../../../support/sockets/client.ts";
import { speakWords } from "../../../support/sockets/scripted-speech.ts";

const password = "four plain words here";
const path = "/dashboard/playground/ws3?modelId=mist&speaker=abbie&samplingRate=8000&audioFormat=pcm";

/** The URL for users. Its port differs from the port on which the server listens. */
const dashboardUrl = "http://127.0.0.1";

const folder = folderOfTests("playground-socket");
writeFileSync(join(folder, "setup"), "setup");

let model: ScriptedModel;
let api: TestApi;
let owner: Visitor;

beforeAll(async () => {
  model = await startScriptedModel(speakWords);
});
beforeEach(async () => {
  const database = join(mkdtempSync(join(folder, "db-")), "svc-tts.db");
  const dashboard = { url: dashboardUrl, setupFile: join(folder, "setup") };
  api = await startTestApi(model.url, { database, dashboard });
  owner = new Visitor(api.url);
  await owner.post("/dashboard/setup", { token: "setup", name: "Ada", password });
});
afterEach(() => api.stop());
afterAll(() => model.close());

/** Returns the headers that a browser sends from a page of the server. */
const fromHere = ({ cookie }: Visitor) => ({ cookie, origin: api.url });
const refusal = async (headers: Record<string, string>) =>
  (await refusedUpgrade(api.url, path, { headers })).status;

it("speaks for the session of a page, as the user at the dashboard", async () => {
  const member = await addSignedInUser(owner, api.url, {
    name: "bob",
    role: "member",
    team: "red",
    password,
  });
  for (const visitor of [owner, member]) {
    const client = await connectSocket(api.url, path, { headers: fromHere(visitor) });
    client.send({ text: "Hello there. ", contextId: "0" }, { operation: "flush" });
    await client.until("done");
    expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
    client.socket.terminate();
  }
});

it("refuses upgrades without a session, of a viewer, and of pages of other sites", async () => {
  const viewer = await addSignedInUser(owner, api.url, {
    name: "eve",
    role: "viewer",
    team: "red",
    password,
  });
  const { cookie } = owner;
  expect(await refusal({ origin: api.url })).toBe(401);
  expect(await refusal({ origin: api.url, cookie: "svc-tts=guessed" })).toBe(401);
  expect(await refusal(fromHere(viewer))).toBe(403);
  expect(await refusal({ cookie })).toBe(403);
  expect(await refusal({ cookie, origin: "https://evil.example.com" })).toBe(403);
  expect(await refusal({ ...fromHere(owner), "sec-fetch-site": "cross-site" })).toBe(403);
  await owner.post("/dashboard/logout", {});
  expect(await refusal({ cookie, origin: api.url })).toBe(401);
});

it("closes an open socket at its next synthesis after the user signed out or was removed", async () => {
  const member = await addSignedInUser(owner, api.url, {
    name: "bob",
    role: "member",
    team: "red",
    password,
  });
  const users = (await owner.get("/dashboard/people")).text; // Bob is the last user in alphabetical order.
  const id = [...users.matchAll(/name="id" value="([\w-]+)"/g)].at(-1)?.[1] ?? "";
  const ends = [
    { visitor: member, end: () => owner.post("/dashboard/people/remove", { id }) },
    { visitor: owner, end: () => owner.post("/dashboard/logout", {}) },
  ];
  for (const { visitor, end } of ends) {
    const client = await connectSocket(api.url, path, { headers: fromHere(visitor) });
    client.send({ text: "One. ", contextId: "0" }, { operation: "flush" });
    await client.until("done");
    expect((await end()).status).toBe(303);
    const calls = model.calls.length;
    client.send({ text: "Two. ", contextId: "1" });
    expect(await client.closed()).toEqual({ code: 1008, reason: "401: Missing Authorization header" });
    expect(client.sequence).toEqual(["chunk", "timestamps", "done"]);
    expect(model.calls.length).toBe(calls);
  }
});

it("speaks on if another session of the user ends", async () => {
  const other = new Visitor(api.url);
  await other.get("/dashboard/login");
  await other.post("/dashboard/login", { name: "Ada", password });
  const client = await connectSocket(api.url, path, { headers: fromHere(owner) });
  await other.post("/dashboard/logout", {});
  client.send({ text: "One. ", contextId: "0" }, { operation: "flush" });
  await client.until("done");
  expect(client.closing).toBeUndefined();
  client.socket.terminate();
});

it("accepts pages of the dashboard's URL behind a proxy that replaces the Host header", async () => {
  const { cookie } = owner;
  const client = await connectSocket(api.url, path, { headers: { cookie, origin: dashboardUrl } });
  client.send({ text: "One. ", contextId: "0" }, { operation: "flush" });
  await client.until("done");
  client.socket.terminate();
  const port = new URL(api.url).port;
  for (const origin of ["http://127.0.0.2", "https://127.0.0.1", `http://127.0.0.2:${port}`, "null"]) {
    expect(await refusal({ cookie, origin }), origin).toBe(403);
  }
});

it("accepts no session on other paths, and no API key on this one", async () => {
  const headers = fromHere(owner);
  const elsewhere = path.replace("/dashboard/playground", "");
  expect((await refusedUpgrade(api.url, elsewhere, { headers })).status).toBe(401);
  expect((await refusedUpgrade(api.url, path, { key: api.key })).status).toBe(403);
  expect((await refusedUpgrade(api.url, path, { key: api.key, headers: { origin: api.url } })).status).toBe(
    401,
  );
});

it("keeps the path for API keys if there is no dashboard", async () => {
  const plain = await startTestApi(model.url);
  const client = await connectSocket(plain.url, path, { key: plain.key });
  client.socket.terminate();
  await plain.stop();
});
