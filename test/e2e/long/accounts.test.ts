/** Two API pods whose PostgreSQL is killed, hangs and stays down: requests with a known key are not affected. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { paths } from "../../../config/contract/names.ts";
import { createKey } from "../../../server/store/keys/key.ts";
import { eventually } from "../../support/eventually.ts";
import { SharedAccounts } from "../../support/server/shared-accounts.ts";

/** The number of requests of each kind that need PostgreSQL while it is down. */
const requestsDuringOutage = 25;
const accounts = new SharedAccounts(inject("cluster"));

beforeAll(async () => {
  await accounts.open();
  await accounts.setUp();
});
afterAll(() => accounts.close());

/** Two clients for each pod, which send one request after the other until they are stopped. */
function callers(places: readonly string[], key: string) {
  const answers = new Map<string, number>();
  let count = 0;
  let longestMs = 0;
  let calling = true;
  const call = async (at: string) => {
    while (calling) {
      const began = performance.now();
      const what = await accounts.speak(at, key).then(
        ({ status, code }) => `${status} ${code ?? ""}`.trim(),
        (error: Error) => String(error.cause ?? error),
      );
      answers.set(what, (answers.get(what) ?? 0) + 1);
      count++;
      longestMs = Math.max(longestMs, performance.now() - began);
    }
  };
  const all = places.flatMap((at) => [call(at), call(at)]);
  return {
    /** Waits for this many more responses. */
    more(wanted: number) {
      const before = count;
      return eventually(`${wanted} more answers`, () => count >= before + wanted);
    },
    async stop() {
      calling = false;
      await Promise.all(all);
      return { answers: Object.fromEntries(answers), spoken: answers.get("200") ?? 0, longestMs };
    },
  };
}

describe("PostgreSQL", () => {
  it("restarts after it was killed, without a failed request of a known key and without a lost OOV word", async () => {
    const { postgres } = accounts;
    const key = await accounts.knownKey("listener");
    const load = callers(accounts.pods, key);
    await load.more(40);
    await postgres.kill();
    const asked = await askWhileAway();
    await load.more(40);
    expect(await spooled(), "words wait on the disk").toBeGreaterThan(0);
    await postgres.restart();
    for (const at of accounts.pods) {
      const fresh = `after ${at}`;
      await eventually(
        "a key is created",
        async () => (await accounts.makeKey(at, { name: fresh })).status === 201,
      );
    }
    const { answers, spoken, longestMs } = await load.stop();
    await eventually("all words are there", async () => (await countOf(key)) >= spoken);
    console.info(
      [
        `PostgreSQL away: with a known key ${JSON.stringify(answers)}, at longest ${longestMs.toFixed(0)} ms`,
        `what needs it meanwhile, and the longest wait in ms: ${JSON.stringify(asked)}`,
      ].join("\n"),
    );
    expect(Object.keys(answers)).toEqual(["200"]);
    expect(await countOf(key)).toBe(spoken);
    expect(Object.keys(asked).sort()).toEqual([
      "a key is created: 503 store_unavailable",
      "an unknown key: 401 unauthorized",
      "keys page: 503",
      "words: 503 store_unavailable",
    ]);
    await eventually("nothing waits any more", async () => (await spooled()) === 0);
  });

  it("hangs and continues, without a failed request of a known key", async () => {
    const { postgres, one, other } = accounts;
    const key = await accounts.knownKey("patient");
    const load = callers(accounts.pods, key);
    await load.more(20);
    await postgres.hang();
    const { status, code } = await accounts.makeKey(one, { name: "hung" });
    await load.more(100);
    await postgres.goOn();
    const { answers, longestMs } = await load.stop();
    console.info(
      `PostgreSQL hangs: with a known key ${JSON.stringify(answers)}, at longest ${longestMs.toFixed(0)} ms`,
    );
    expect(Object.keys(answers)).toEqual(["200"]);
    expect({ status, code }).toEqual({ status: 503, code: "store_unavailable" });
    await eventually(
      "keys are made again",
      async () => (await accounts.makeKey(other, { name: "again" })).status === 201,
    );
  });

  it("is down while an API pod is replaced, and the pod that has read the keys serves all requests", async () => {
    const { postgres, world, name } = accounts;
    const key = await accounts.knownKey("survivor");
    await postgres.kill();
    const load = callers([await accounts.serviceUrl()], key);
    const [first] = await accounts.apiPods();
    const olds = (await accounts.apiPods()).map(({ pod }) => pod);
    await world.kubectl.do("delete", "pod", first?.pod ?? "", "--wait=false");
    const fresh = await eventually("a new pod that listens", async () => {
      const found = (await accounts.apiPods()).find(({ pod }) => !olds.includes(pod));
      return found !== undefined && (await fetch(`${found.url}/ready`)) && found;
    });
    await world.condition(name, "ApiReady", "False", /1 of 2 pods.*database/);
    const direct = await accounts.speak(fresh.url, key);
    const { isReady } = (await accounts.apiPods()).find(({ pod }) => pod === fresh.pod) ?? fresh;
    await load.more(40);
    const { answers } = await load.stop();
    await postgres.restart();
    await accounts.findPods();
    console.info(
      `an API pod replaced while PostgreSQL is away: through the Service ${JSON.stringify(answers)}`,
    );
    expect(Object.keys(answers)).toEqual(["200"]);
    expect(isReady).toBe(false);
    expect(direct).toMatchObject({ status: 503, code: "store_unavailable" });
    for (const at of accounts.pods) expect(await accounts.statusAt(at, key)).toBe(200);
  });
});

async function countOf(key: string): Promise<number> {
  const answer = await accounts.wordsAt(accounts.one, key);
  if (!answer.ok) return 0;
  const { oovs } = (await answer.json()) as { oovs: { word: string; count: number }[] };
  return oovs.find(({ word }) => word === accounts.word)?.count ?? 0;
}

/** Repeats the requests that need PostgreSQL. Returns their statuses, and the longest wait in milliseconds. */
async function askWhileAway(): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  let began = performance.now();
  const note = (what: string) => {
    const now = performance.now();
    answers[what] = Math.max(answers[what] ?? 0, Math.round(now - began));
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
  return answers;
}

/** The number of queued out-of-vocabulary words in both pods. */
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
