/**
 * Tests two API pods while their PostgreSQL is killed, hangs or is down. Requests with an API key that the
 * pods have already read are not affected.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { paths } from "../../../config/contract/names.ts";
import { createKey } from "../../../server/store/keys/key.ts";
import { eventually } from "../../support/eventually.ts";
import { SharedAccounts } from "../../support/server/shared-accounts.ts";

/** While PostgreSQL is down, the test sends this many requests of each kind that needs PostgreSQL. */
const requestsDuringOutage = 25;
const accounts = new SharedAccounts(inject("cluster"));

beforeAll(async () => {
  await accounts.open();
  await accounts.setUp();
});
afterAll(() => accounts.close());

/** Starts two clients for each URL. Each client sends one request after the other until `stop`. */
function startClients(urls: readonly string[], key: string) {
  const results = new Map<string, number>();
  let count = 0;
  let longestMs = 0;
  let isRunning = true;
  const call = async (url: string) => {
    while (isRunning) {
      const began = performance.now();
      const result = await accounts.speak(url, key).then(
        ({ status, code }) => `${status} ${code ?? ""}`.trim(),
        (error: Error) => String(error.cause ?? error),
      );
      results.set(result, (results.get(result) ?? 0) + 1);
      count++;
      longestMs = Math.max(longestMs, performance.now() - began);
    }
  };
  const all = urls.flatMap((url) => [call(url), call(url)]);
  return {
    /** Waits for the given number of further responses. */
    more(responses: number) {
      const before = count;
      return eventually(`${responses} more responses`, () => count >= before + responses);
    },
    async stop() {
      isRunning = false;
      await Promise.all(all);
      return { results: Object.fromEntries(results), succeeded: results.get("200") ?? 0, longestMs };
    },
  };
}

describe("requests during an outage of PostgreSQL", () => {
  it("succeed with a known key after a crash, and no out-of-vocabulary word is lost", async () => {
    const { postgres } = accounts;
    const key = await accounts.knownKey("listener");
    const load = startClients(accounts.pods, key);
    await load.more(40);
    await postgres.kill();
    const failures = await sendRequestsDuringOutage();
    await load.more(40);
    expect(await spooled(), "number of words in the disk queue").toBeGreaterThan(0);
    await postgres.restart();
    for (const at of accounts.pods) {
      const fresh = `after ${at}`;
      await eventually(
        "the creation of a key",
        async () => (await accounts.makeKey(at, { name: fresh })).status === 201,
      );
    }
    const { results, succeeded, longestMs } = await load.stop();
    await eventually("PostgreSQL to have all words", async () => (await countOf(key)) >= succeeded);
    console.info(
      [
        `PostgreSQL down: requests with a known key ${JSON.stringify(results)}, longest ${longestMs.toFixed(0)} ms`,
        `requests that need PostgreSQL, with the longest time in ms: ${JSON.stringify(failures)}`,
      ].join("\n"),
    );
    expect(Object.keys(results)).toEqual(["200"]);
    expect(await countOf(key)).toBe(succeeded);
    expect(Object.keys(failures).sort()).toEqual([
      "a key is created: 503 store_unavailable",
      "an unknown key: 401 unauthorized",
      "keys page: 503",
      "words: 503 store_unavailable",
    ]);
    await eventually("an empty disk queue", async () => (await spooled()) === 0);
  });

  it("succeed with a known key while PostgreSQL hangs", async () => {
    const { postgres, one, other } = accounts;
    const key = await accounts.knownKey("patient");
    const load = startClients(accounts.pods, key);
    await load.more(20);
    await postgres.hang();
    const { status, code } = await accounts.makeKey(one, { name: "hung" });
    await load.more(100);
    await postgres.goOn();
    const { results, longestMs } = await load.stop();
    console.info(
      `PostgreSQL hangs: requests with a known key ${JSON.stringify(results)}, longest ${longestMs.toFixed(0)} ms`,
    );
    expect(Object.keys(results)).toEqual(["200"]);
    expect({ status, code }).toEqual({ status: 503, code: "store_unavailable" });
    await eventually(
      "the creation of a key after the hang",
      async () => (await accounts.makeKey(other, { name: "again" })).status === 201,
    );
  });

  it("succeed while an API pod is replaced, because the other pod has read the keys", async () => {
    const { postgres, world, name } = accounts;
    const key = await accounts.knownKey("survivor");
    await postgres.kill();
    const load = startClients([await accounts.serviceUrl()], key);
    const [first] = await accounts.apiPods();
    const previousPods = (await accounts.apiPods()).map(({ pod }) => pod);
    await world.kubectl.do("delete", "pod", first?.pod ?? "", "--wait=false");
    const fresh = await eventually("a new pod that listens", async () => {
      const found = (await accounts.apiPods()).find(({ pod }) => !previousPods.includes(pod));
      return found !== undefined && (await fetch(`${found.url}/ready`)) && found;
    });
    await world.condition(name, "ApiReady", "False", /1 of 2 pods.*database/);
    const direct = await accounts.speak(fresh.url, key);
    const { isReady } = (await accounts.apiPods()).find(({ pod }) => pod === fresh.pod) ?? fresh;
    await load.more(40);
    const { results } = await load.stop();
    await postgres.restart();
    await accounts.findPods();
    console.info(
      `an API pod is replaced while PostgreSQL is down: through the Service ${JSON.stringify(results)}`,
    );
    expect(Object.keys(results)).toEqual(["200"]);
    expect(isReady).toBe(false);
    expect(direct).toMatchObject({ status: 503, code: "store_unavailable" });
    for (const at of accounts.pods) expect(await accounts.statusAt(at, key)).toBe(200);
  });
});

async function countOf(key: string): Promise<number> {
  const response = await accounts.wordsAt(accounts.one, key);
  if (!response.ok) return 0;
  const { oovs } = (await response.json()) as { oovs: { word: string; count: number }[] };
  return oovs.find(({ word }) => word === accounts.word)?.count ?? 0;
}

/**
 * Repeats the requests that need PostgreSQL.
 * @returns the longest time in milliseconds of each kind of request, by kind, status and error code
 */
async function sendRequestsDuringOutage(): Promise<Record<string, number>> {
  const longest: Record<string, number> = {};
  let began = performance.now();
  const note = (what: string) => {
    const now = performance.now();
    longest[what] = Math.max(longest[what] ?? 0, Math.round(now - began));
    began = now;
  };
  const unknown = createKey();
  for (let round = 0; round < requestsDuringOutage; round++) {
    const at = accounts.pods[round % 2] ?? "";
    began = performance.now();
    const { status, code } = await accounts.makeKey(at, { name: `away ${round}` });
    note(`a key is created: ${status} ${code}`);
    const words = await accounts.wordsAt(at, accounts.admin);
    note(`words: ${words.status} ${((await words.json()) as { code?: string }).code}`);
    note(`keys page: ${(await accounts.owner.get("/dashboard/keys")).status}`);
    const refused = await accounts.speak(at, unknown);
    note(`an unknown key: ${refused.status} ${refused.code}`);
  }
  return longest;
}

/** Returns the number of out-of-vocabulary words in the disk queues of both pods. */
async function spooled(): Promise<number> {
  const script = `
    const { readdirSync, readFileSync } = require("node:fs");
    const lines = readdirSync("${paths.spool}").map((file) => readFileSync("${paths.spool}/" + file, "utf8").split("\\n").length - 1);
    console.log(lines.reduce((a, b) => a + b, 0));`;
  const counts = (await accounts.apiPods()).map(async ({ pod }) =>
    Number(await accounts.world.kubectl.exec(pod, "node", "-e", script)),
  );
  return (await Promise.all(counts)).reduce((a, b) => a + b, 0);
}
