import { execFile } from "node:child_process";
import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { keysCommands } from "../../../../server/cli/keys.ts";
import { openDatabase } from "../../../../server/store/database/database.ts";
import { createKey, type Scope } from "../../../../server/store/keys/key.ts";
import type { KeyManager } from "../../../../server/store/keys/key-manager.ts";
import { openKeyTableBook } from "../../../../server/store/keys/key-table.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { runInProcess } from "../../../support/server/command-line.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";

const run = promisify(execFile);
const staleSeconds = 60;
const checkIntervalSeconds = 2;
const main = join(import.meta.dirname, "../../../../server/main.ts");
const folder = folderOfTests("keys");

let model: ScriptedModel;
let database: string;
let api: TestApi;
let clock: FakeClock;

beforeAll(async () => {
  model = await startScriptedModel(speakTone(0.1));
});
beforeEach(() => {
  database = join(mkdtempSync(join(folder, "db-")), "svc-tts.db");
  clock = new FakeClock(Date.now()); // The command line uses the clock of the machine.
});
afterEach(() => api.stop());
afterAll(() => model.close());

async function start(): Promise<void> {
  api = await startTestApi(model.url, { database, keysStaleSeconds: staleSeconds }, { clock });
}

/** Runs the command line in a separate process, like a user. */
async function keysProcess(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [main, "keys", ...args, "--database", database]);
  return stdout.trim();
}

/** Runs the command line in this process. */
async function keys(...args: string[]): Promise<string> {
  const line = ["keys", ...args, "--database", database];
  const { code, out, err } = await runInProcess(keysCommands, line, { now: () => clock.nowMs() });
  expect(code, err).toBe(0);
  return out;
}

/** Changes keys in the database, without the command line. */
function change<T>(act: (book: KeyManager) => Promise<T>): Promise<T> {
  const opened = openDatabase(database);
  return act(openKeyTableBook(opened, () => clock.nowMs())).finally(() => opened.close());
}

function makeKey(name: string, scopes: readonly Scope[] = ["tts:write"]): Promise<string> {
  const key = createKey();
  return change(async (book) => {
    await book.create(key, { name, scopes });
    return key;
  });
}

/** Advances the clock until a request with the key has the status. */
async function becomes(key: string, status: number): Promise<void> {
  const hasStatus = async () => (await statusOf(key)) === status;
  await eventuallyOn(clock, `status ${status} for the key`, hasStatus, checkIntervalSeconds * 1000);
}

async function statusOf(key: string): Promise<number> {
  const answer = await api.post(
    { speaker: "abbie", text: "Hello." },
    { authorization: `Bearer ${key}`, accept: "audio/pcm" },
  );
  await answer.arrayBuffer();
  return answer.status;
}

describe("keys of a database", () => {
  it("are accepted by a running server after their creation and rotation, and rejected after their revocation", async () => {
    await start();
    expect(await statusOf(api.key)).toBe(200); // The key of the file is accepted too.
    const key = await keysProcess("create", "--name", "app", "--streams", "3");
    await becomes(key, 200);
    const fresh = await keys("rotate", "--name", "app", "--overlap", "1");
    await becomes(fresh, 200);
    expect(await statusOf(key)).toBe(200); // Both keys work during the overlap.
    expect(await keys("list")).toMatch(/^NAME .*\napp .*\napp /);
    await keys("revoke", "--name", "app");
    await becomes(key, 401);
    expect(await statusOf(fresh)).toBe(401);
  });

  it("get the same response if they are unknown, expired, revoked or misspelt", async () => {
    const revoked = await makeKey("app");
    const read = await makeKey("reader", ["oov:read"]);
    await change((book) => book.revoke("app"));
    await start();
    const answers = await Promise.all(
      [revoked, api.otherKeys.expired, `${read.slice(0, -1)}x`, "of another kind"].map(async (key) => {
        const answer = await api.post({}, { authorization: `Bearer ${key.replaceAll(" ", "-")}` });
        const { requestId: _, ...problem } = (await answer.json()) as { requestId: string };
        return { status: answer.status, header: answer.headers.get("www-authenticate"), problem };
      }),
    );
    expect(answers[0]).toMatchObject({
      status: 401,
      header: 'Bearer realm="svc-tts", error="invalid_token"',
    });
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    const unscoped = await api.post({}, { authorization: `Bearer ${read}` });
    expect(unscoped.status).toBe(403);
    expect(unscoped.headers.get("www-authenticate")).toContain(
      'error="insufficient_scope", scope="tts:write"',
    );
  });

  it("stay valid for the configured time after the loss of the database, and then get 503", async () => {
    const key = await makeKey("app");
    await start();
    expect(await statusOf(key)).toBe(200);
    renameSync(database, `${database}.away`);
    await clock.advance(staleSeconds * 1000);
    expect(await statusOf(key)).toBe(200);
    await clock.advance(1);
    expect(await statusOf(key)).toBe(503);
    expect(await statusOf(api.key)).toBe(200); // The keys of the file are independent of the database.
    renameSync(`${database}.away`, database);
    await becomes(key, 200);
  });

  it("get 503 until the server has read the database, while keys of the file are accepted", async () => {
    writeFileSync(database, "no database at all ".repeat(1000));
    await start();
    const key = `svc_${"x".repeat(38)}`;
    expect(await statusOf(key)).toBe(401); // The checksum of the key is wrong, which needs no database.
    expect(await statusOf("a-key-of-another-kind")).toBe(503);
    expect(await statusOf(api.key)).toBe(200);
  });
});
