import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { voices } from "../../../../config/contract/voices.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { createKey, type Scope } from "../../../../server/store/keys/key.ts";
import { toFileEntry } from "../../../../server/store/keys/key-file.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { framesOf, internalToken, invoke, modelTier } from "../../../support/server/model-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";

const clock = new FakeClock();
const folder = folderOfTests("oovs");

let tier: RunningTier;
let model: ScriptedModel;
let api: TestApi | undefined;

beforeAll(async () => {
  // The affix file of Hunspell defines plurals.
  writeFileSync(join(folder, "fr.aff"), "SET UTF-8\nSFX S Y 1\nSFX S 0 s .\n");
  writeFileSync(join(folder, "fr.dic"), "3\nbonjour\nmaison/S\nles\n");
  tier = await modelTier({ dictionaryFolder: folder });
  model = await startScriptedModel(speakTone(0.1));
});
afterEach(async () => {
  await api?.stop();
  api = undefined;
  model.calls.splice(0);
});
afterAll(async () => {
  await model.close();
  await tier.stop();
});

async function oovsOf(invocation: Parameters<typeof invoke>[1]): Promise<readonly string[] | undefined> {
  let words: readonly string[] | undefined;
  for await (const frame of framesOf(await invoke(tier.url, invocation))) {
    if (frame.kind === "oovs") words = frame.words;
  }
  return words;
}

describe("a model tier", () => {
  it("reports out-of-vocabulary words before the end of the stream, only if the request has saveOovs", async () => {
    const text = "Dr. Smith's well-known zorblaxian came at 3:30, said quuxly.";
    expect(await oovsOf({ text, saveOovs: true })).toEqual(["zorblaxian", "quuxly"]);
    expect(await oovsOf({ text })).toBeUndefined(); // An older API tier does not send the field saveOovs.
    expect(await oovsOf({ text: "Hello there.", saveOovs: true })).toBeUndefined();
  });

  it("uses its own dictionary for Dutch, mounted dictionaries for other languages, and reports no words without a dictionary", async () => {
    const dutch = { speaker: "sanne", lang: "nld", text: "De huizen zorblaxen." };
    await oovsOf({ ...dutch, saveOovs: true }); // This request only loads the dictionary.
    expect(await oovsOf({ ...dutch, saveOovs: true })).toEqual(["zorblaxen"]);
    const french = { speaker: "claire", lang: "fra", text: "Bonjour, les maisons blorquent." };
    expect(await oovsOf({ ...french, saveOovs: true })).toEqual(["blorquent"]);
    const greek = { speaker: "eleni", lang: "ell", text: "Καλημέρα" };
    expect(await oovsOf({ ...greek, saveOovs: true })).toBeUndefined();
  });
});

async function start(service: string): Promise<TestApi> {
  api = await startTestApi(service, service === tier.url ? { voices } : {}, { clock });
  return api;
}

/** Adds three keys: `writer` and `reader` share the words of team blue, `loner` has no team. */
function addKeys(to: TestApi): Record<"writer" | "reader" | "loner", string> {
  const secrets = { writer: createKey(), reader: createKey(), loner: createKey() };
  const entry = (name: keyof typeof secrets, scopes: readonly Scope[], team?: string) =>
    toFileEntry(secrets[name], { name, scopes, ...(team !== undefined && { team }) });
  const keys = [
    entry("writer", ["tts:write"], "blue"),
    entry("reader", ["oov:read"], "blue"),
    entry("loner", ["tts:write", "oov:read"]),
  ];
  writeFileSync(join(to.folder, "keys.yaml"), stringify({ keys }));
  return secrets;
}

async function saved(to: TestApi, key: string, query = ""): Promise<{ word: string; count: number }[]> {
  const answer = await fetch(`${to.url}/v1/oovs${query}`, { headers: { authorization: `Bearer ${key}` } });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { oovs: { word: string; count: number }[] }).oovs;
}

describe("saveOovs", () => {
  const body = { speaker: "abbie", text: "The zorblaxian.", saveOovs: true };

  it("stores words, which only keys of the same team can read", async () => {
    const running = await start(model.url);
    const keys = addKeys(running);
    model.script = async (call) => {
      await call.head(16_000);
      await call.tone(1600, 16_000);
      if (call.invocation.saveOovs) await call.send({ kind: "oovs", words: ["zorblaxian"] });
      await call.end(1600);
    };
    const speak = async (key: string, more: object, accept: string) => {
      const headers = { authorization: `Bearer ${key}`, accept };
      const answer = await running.post({ ...body, ...more }, headers);
      await answer.arrayBuffer();
      return answer.status;
    };
    const isKnown = async () => (await speak(keys.loner, {}, "audio/basic")) === 200;
    await eventuallyOn(clock, "the server to read the keys", isKnown);
    for (const [more, accept] of [
      ...["audio/pcm", "audio/wav", "audio/mpeg"].map((accept) => [{ modelId: "mist" }, accept] as const),
      [{ audioFormat: "wav" }, "application/json"],
      [{ audioFormat: "mp3" }, "application/json"],
      [{ audioFormat: "ogg", samplingRate: 8000 }, "application/json"],
    ] as const) {
      expect(await speak(keys.writer, more, accept)).toBe(200);
    }
    const callsBefore = model.calls.length;
    expect(await speak(keys.writer, {}, "text/event-stream")).toBe(200);
    expect(await speak(keys.writer, { saveOovs: false }, "audio/pcm")).toBe(200);
    const saves = model.calls.slice(callsBefore).map(({ invocation }) => invocation.saveOovs);
    expect(saves).toEqual([undefined, undefined]);
    const isSaved = async () => (await saved(running, keys.reader))[0]?.count === 6;
    await eventuallyOn(clock, "the words in the database", isSaved);
    const [word] = await saved(running, keys.reader, "?language=en&limit=5");
    expect(word).toMatchObject({ word: "zorblaxian", language: "eng", count: 6 });
    expect(word).toHaveProperty("firstSeen", expect.stringMatching(/^\d{4}-.*Z$/));
    expect(await saved(running, keys.reader, "?language=nld")).toEqual([]);
    expect(await saved(running, keys.loner)).toMatchObject([{ word: "zorblaxian", count: 1 }]);
  });

  it("stores words that only keys with the scope oov:read can list, and invalid queries are rejected", async () => {
    const running = await start(model.url);
    const list = (query: string, key: string) =>
      fetch(`${running.url}/v1/oovs${query}`, { headers: { authorization: `Bearer ${key}` } });
    const keys = addKeys(running);
    await eventuallyOn(
      clock,
      "the server to read the keys",
      async () => (await list("", keys.reader)).status === 200,
    );
    expect((await list("", keys.writer)).status).toBe(403);
    expect((await list("", running.key)).status).toBe(401);
    const invalid = ["limit=0", "limit=many", "limit=10001", "language=klingon", "language=a&language=b"];
    for (const query of invalid) expect((await list(`?${query}`, keys.reader)).status).toBe(400);
  });

  it("stores the words of a real model tier", async () => {
    const running = await start(tier.url);
    writeFileSync(join(running.folder, "token"), internalToken);
    const keys = addKeys(running);
    const headers = { authorization: `Bearer ${keys.loner}`, accept: "audio/pcm" };
    const isSpoken = async () => {
      const answer = await running.post({ ...body, speaker: "alan" }, headers);
      await answer.arrayBuffer();
      return answer.status === 200;
    };
    await eventuallyOn(clock, "a successful request", isSpoken);
    await eventuallyOn(
      clock,
      "the words in the database",
      async () => (await saved(running, keys.loner)).length === 1,
    );
    expect(await saved(running, keys.loner)).toMatchObject([{ word: "zorblaxian" }]);
  });
});
