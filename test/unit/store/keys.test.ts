import { describe, expect, it } from "vitest";
import { createKey, digestKey, isWellFormedKey, type KeyFacts } from "../../../server/store/keys/key.ts";
import { openKeyFileBook, parseKeyFile } from "../../../server/store/keys/key-file.ts";
import type { KeyManager } from "../../../server/store/keys/key-manager.ts";
import { createSingleKeyStore, joinStores, KeyIndex } from "../../../server/store/keys/key-store.ts";

const sha256 = "a".repeat(64);

describe("an API key", () => {
  it("has the prefix svc_ and 38 base62 characters with a checksum", () => {
    const key = createKey();
    expect(key).toMatch(/^svc_[0-9A-Za-z]{38}$/);
    expect(isWellFormedKey(key)).toBe(true);
    const wrong = (key[10] === "x" ? "y" : "x") as string;
    expect(isWellFormedKey(key.slice(0, 10) + wrong + key.slice(11))).toBe(false);
    expect(isWellFormedKey(key.slice(0, -1))).toBe(false);
    expect(createKey()).not.toBe(key);
  });
});

/** Returns the text of a keys.yaml after a change. */
async function edit(text: string, change: (book: KeyManager) => Promise<void>, now = 0): Promise<string> {
  let written = text;
  const write = (next: string) => {
    written = next;
  };
  await change(openKeyFileBook({ read: () => text, write, now: () => now }));
  return written;
}

function add(text: string, key: string, facts: KeyFacts): Promise<string> {
  return edit(text, (book) => book.create(key, facts));
}

describe("keys.yaml", () => {
  it("contains only digests of keys, by which entries are found", async () => {
    const key = createKey();
    const text = await add("", key, {
      name: "app",
      scopes: ["tts:write"],
      expiresAt: Date.UTC(2030, 0, 1),
    });
    expect(text).not.toContain(key);
    const entries = parseKeyFile(text);
    expect(new KeyIndex(entries).find(digestKey(key))).toMatchObject({
      name: "app",
      scopes: ["tts:write"],
      expiresAt: Date.UTC(2030, 0, 1),
    });
    expect(new KeyIndex(entries).find(digestKey(`${key}x`))).toBeUndefined();
  });

  it("may be empty, and keeps its content when a key is added", async () => {
    expect(parseKeyFile("")).toEqual([]);
    expect(parseKeyFile("keys: []")).toEqual([]);
    const one = await add("", createKey(), { name: "one", scopes: ["tts:write"] });
    const two = await add(one, createKey(), { name: "two", scopes: ["admin"] });
    expect(parseKeyFile(two).map((entry) => entry.name)).toEqual(["one", "two"]);
    await expect(add(two, createKey(), { name: "one", scopes: [] })).rejects.toThrow("named one already");
  });

  it.each([
    ["[]", "must be a YAML mapping"],
    ["keys: {}", "must be a list"],
    ["keys: [7]", "keys[0] must be a mapping"],
    ["keys: [{sha256: x}]", "keys[0]: name"],
    ["keys: [{name: app, sha256: abc, scopes: []}]", "keys[0] (app): sha256 must be 64"],
    [`keys: [{name: app, sha256: ${sha256}}]`, "keys[0] (app): scopes must be a list of tts:write"],
    [`keys: [{name: app, sha256: ${sha256}, scopes: [root]}]`, "keys[0] (app): scopes"],
    [`keys: [{name: app, sha256: ${sha256}, scopes: [], expiresAt: soon}]`, "keys[0] (app): expiresAt"],
    [
      `keys: [{name: app, sha256: ${sha256}, scopes: [], streams: 0}]`,
      "keys[0] (app): streams must be an integer of at least 1",
    ],
    [`keys: [{name: app, sha256: ${sha256}, scopes: [], team: 7}]`, "keys[0] (app): team"],
  ])("is refused if it is %s, and the message names the location", (text, message) => {
    expect(() => parseKeyFile(text)).toThrow(message);
  });
});

describe("joined key stores", () => {
  it("are queried one after the other", async () => {
    const store = joinStores([createSingleKeyStore("first", "a"), createSingleKeyStore("second", "b")]);
    expect((await store.find(digestKey("second")))?.name).toBe("b");
    expect(await store.find(digestKey("third"))).toBeUndefined();
  });
});

it("the error for a keys file that is not YAML contains the position, but not the content", () => {
  const read = () => parseKeyFile(`keys: [ {{{ ${createKey()}`);
  expect(read).toThrow(/^the keys file is not valid YAML at line 1, column \d+$/);
  expect(() => parseKeyFile(`a: b: ${createKey()}`)).not.toThrow(/svc_/);
});
