/**
 * Two API pods with one PostgreSQL and one Valkey: what is changed at one counts at the other within 5 seconds, limits hold for
 * both together, and who speaks does not hear that PostgreSQL was killed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { paths } from "../../../config/contract/names.ts";
import { createKey } from "../../../server/store/key.ts";
import { eventually } from "../../support/eventually.ts";
import {
  giveStoresImage,
  type PodPostgres,
  startPodPostgres,
  startPodValkey,
} from "../../support/pod-stores.ts";
import { condition } from "../../support/real-cluster.ts";
import { Visitor } from "../../support/visitor.ts";
import { mist, ttsDeployment, World } from "../../support/world.ts";

const cluster = inject("cluster");
const world = new World({ cluster, namespace: "e2e-accounts" });
const { kubectl } = world;
const name = "shared";
const setupSecret = "tts-dashboard-setup";
const awayMs = 25_000;
const word = "zorblax";

let postgres: PodPostgres;
let [one, other] = ["", ""];
let owner: Visitor;
let admin = "";

beforeAll(async () => {
  if (!cluster.isLocal) throw new Error("PostgreSQL's image is made for the local cluster: unset KUBECONFIG");
  await giveStoresImage();
  await world.open();
  await world.license(30);
  postgres = await startPodPostgres(kubectl, "database");
  const valkey = await startPodValkey(kubectl, "valkey");
  await kubectl.do("create", "secret", "generic", setupSecret, `--from-literal=token=${"s3tup".repeat(10)}`);
  const api = {
    replicas: 2,
    keys: { postgres: postgres.keys },
    dashboard: { url: "https://tts.example.com", setupSecretRef: { name: setupSecret } },
    rateLimit: { valkey },
    drain: { endpointDelaySeconds: 3, maxStreamSeconds: 20 },
  };
  await kubectl.apply(ttsDeployment(name, { api, models: [mist()] }));
  await world.condition(name, "Ready", "True");
  await lookForPods();
});

afterAll(async () => {
  await world.close();
  await postgres.remove();
});

interface ApiPod {
  readonly pod: string;
  readonly url: string;
  readonly isReady: boolean;
}

async function apiPods(): Promise<ApiPod[]> {
  const found = await kubectl.list("pods", `tts.svc.dev/deployment=${name},app.kubernetes.io/component=api`);
  return found
    .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.podIP !== undefined)
    .map((pod) => ({
      pod: pod.metadata.name,
      url: `http://${pod.status?.podIP}:8000`,
      isReady: condition(pod, "Ready")?.status === "True",
    }));
}

async function lookForPods(): Promise<void> {
  const pods = await eventually("two API pods", async () => {
    const all = await apiPods();
    return all.length === 2 && all.every(({ isReady }) => isReady) && all;
  });
  [one = "", other = ""] = pods.map(({ url }) => url);
}

interface Heard {
  readonly status: number;
  /** Of a problem document. */
  readonly code: string | undefined;
  readonly audio: Buffer;
}

async function speak(at: string, key: string, text = `The ${word}.`): Promise<Heard> {
  const answer = await fetch(`${at}/v1/svc-tts`, {
    method: "POST",
    body: JSON.stringify({ modelId: "mist", speaker: "alan", text, saveOovs: true }),
    headers: { authorization: `Bearer ${key}`, accept: "audio/pcm", "content-type": "application/json" },
  });
  const audio = Buffer.from(await answer.arrayBuffer());
  const code = answer.ok ? undefined : (JSON.parse(audio.toString()) as { code?: string }).code;
  return { status: answer.status, code, audio };
}

const statusAt = async (at: string, key: string) => (await speak(at, key)).status;

/** The documented interface of keys, at one pod. */
function keysAt(at: string, method: "POST" | "DELETE", path: string, body?: object): Promise<Response> {
  return fetch(`${at}/v1/keys${path}`, {
    method,
    headers: { authorization: `Bearer ${admin}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
}

async function makeKey(at: string, facts: { readonly name: string; readonly [limit: string]: unknown }) {
  const answer = await keysAt(at, "POST", "", facts);
  const made = (await answer.json()) as { readonly key?: string; readonly code?: string };
  return { status: answer.status, key: made.key ?? "", code: made.code };
}

/** Made at one pod, and known at both. */
async function knownKey(name: string, more: object = {}): Promise<string> {
  const { key } = await makeKey(one, { name, scopes: ["tts:write", "oov:read"], ...more });
  for (const at of [one, other]) await seconds(`${name} is known`, async () => knows(at, key));
  return key;
}

/** Without a request that its limits count. */
async function knows(at: string, key: string): Promise<boolean> {
  return (await wordsAt(at, key)).status !== 401;
}

const wordsAt = (at: string, key: string) =>
  fetch(`${at}/v1/oovs`, { headers: { authorization: `Bearer ${key}` } });

async function countOf(key: string): Promise<number> {
  const answer = await wordsAt(one, key);
  if (!answer.ok) return 0;
  const { oovs } = (await answer.json()) as { oovs: { word: string; count: number }[] };
  return oovs.find((oov) => oov.word === word)?.count ?? 0;
}

/** How long it took until it held. */
async function seconds(what: string, holds: () => Promise<boolean>): Promise<number> {
  const began = performance.now();
  await eventually(what, holds);
  return (performance.now() - began) / 1000;
}

const shown = (times: readonly number[]) => times.map((time) => `${time.toFixed(1)} s`).join(", ");

/** Two callers at each place, one request after another, until they are stopped. */
function callers(places: readonly string[], key: string) {
  const answers = new Map<string, number>();
  let longestMs = 0;
  let calling = true;
  const call = async (at: string) => {
    while (calling) {
      const began = performance.now();
      const what = await speak(at, key).then(
        ({ status, code }) => `${status} ${code ?? ""}`.trim(),
        (error: Error) => String(error.cause ?? error),
      );
      answers.set(what, (answers.get(what) ?? 0) + 1);
      longestMs = Math.max(longestMs, performance.now() - began);
    }
  };
  const all = places.flatMap((at) => [call(at), call(at)]);
  return {
    async stop() {
      calling = false;
      await Promise.all(all);
      return { answers: Object.fromEntries(answers), spoken: answers.get("200") ?? 0, longestMs };
    },
  };
}

describe("people and keys of two API pods", () => {
  it("begin with an owner, by the link with the Secret's text, once for both", async () => {
    const secret = await kubectl.get("secret", setupSecret);
    const token = Buffer.from(secret?.data.token ?? "", "base64").toString();
    owner = new Visitor(one);
    const page = await owner.get(`/dashboard/setup?token=${token}`);
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining("Make the owner") });
    const person = { token, name: "ada", password: "four plain words here" };
    expect(await owner.post("/dashboard/setup", person)).toMatchObject({ status: 303 });
    expect(await owner.get("/dashboard/keys")).toMatchObject({ status: 200 });
    const late = new Visitor(other);
    expect((await late.get(`/dashboard/setup?token=${token}`)).headers.get("location")).toMatch(/login$/);
    expect(await late.post("/dashboard/setup", { ...person, name: "eve" })).toMatchObject({ status: 400 });
    late.cookie = owner.cookie;
    expect(await late.get("/dashboard/keys"), "signed in at both").toMatchObject({ status: 200 });
  });

  it("begin with a key that is made in a pod, and speaks at both and through the Service", async () => {
    const words = ["keys", "create", "--name", "admin", "--scopes", "admin,tts:write,oov:read"];
    const made = await kubectl.do("exec", `deploy/${name}-api`, "--", "node", "server/main.ts", ...words);
    admin = made.trim();
    expect(admin).toMatch(/^svc_\w+$/);
    for (const at of [one, other]) {
      await seconds("the first key is known", async () => (await statusAt(at, admin)) === 200);
    }
    const service = await kubectl.get("service", `${name}-api`);
    expect(await statusAt(`http://${service?.spec.clusterIP}:8000`, admin)).toBe(200);
  });

  it("lose a key at one, and the other refuses it within 5 seconds", async () => {
    const refused: number[] = [];
    for (const round of ["first", "second", "third"]) {
      const key = await knownKey(round);
      expect(await statusAt(other, key)).toBe(200);
      expect((await keysAt(one, "DELETE", `/${round}`)).status).toBe(204);
      refused.push(await seconds("it is refused", async () => (await statusAt(other, key)) === 401));
      await seconds("where it was revoked too", async () => (await statusAt(one, key)) === 401);
    }
    console.info(`revoked at one, refused at the other after ${shown(refused)}`);
  });

  it("learn a word at one, and the other says it so within 5 seconds", async () => {
    const key = await knownKey("lexicon");
    const audioAt = async (at: string) => (await speak(at, key)).audio;
    const before = await audioAt(other);
    expect((await audioAt(one)).equals(before), "the same text is the same audio").toBe(true);
    await owner.get("/dashboard/words");
    await owner.upload("/dashboard/words/import", { team: "" }, lexicon);
    const spoken = await seconds("the other says it", async () => !(await audioAt(other)).equals(before));
    await seconds("both say it", async () => (await audioAt(one)).equals(await audioAt(other)));
    console.info(`a word saved at one is said by the other after ${spoken.toFixed(1)} s`);
  });

  it("let a key have its requests a minute once, not once each", async () => {
    const limit = 60;
    const key = await knownKey("limited", { requestsPerMinute: limit });
    const began = performance.now();
    const take = async (at: string) => {
      const statuses: number[] = [];
      while (statuses.length < limit) {
        statuses.push((await speak(at, key, "Yes.")).status);
        await sleep(300); // so that a second without Valkey's answer is not all of it
      }
      return statuses;
    };
    const taken = await Promise.all([one, other].map(take));
    const spoken = taken.map((statuses) => statuses.filter((status) => status === 200).length);
    const tookS = (performance.now() - began) / 1000;
    const sum = spoken.reduce((a, b) => a + b, 0);
    console.info(
      `limit ${limit} a minute: ${spoken.join(" + ")} = ${sum} spoken of ${2 * limit} in ${tookS.toFixed(0)} s`,
    );
    expect(new Set(taken.flat())).toEqual(new Set([200, 429]));
    expect(tookS, "all in one minute").toBeLessThan(60);
    // where Valkey takes longer than 50 ms to answer, a pod goes by its own count for a second
    expect(sum).toBeLessThanOrEqual(limit * 1.1);
  });
});

describe("PostgreSQL", () => {
  it("is killed under four callers and comes back: none with a known key hears of it, and no word is lost", async () => {
    const key = await knownKey("listener");
    const load = callers([one, other], key);
    await sleep(3_000);
    await postgres.kill();
    const asked = await askWhileAway(awayMs);
    expect(await spooled(), "words wait on the disk").toBeGreaterThan(0);
    const back = performance.now();
    await postgres.restart();
    const made = [];
    for (const at of [one, other]) {
      const fresh = `after ${made.length}`;
      await seconds("a key is made", async () => (await makeKey(at, { name: fresh })).status === 201);
      made.push((performance.now() - back) / 1000);
    }
    const { answers, spoken, longestMs } = await load.stop();
    const arrived = await seconds("all words are there", async () => (await countOf(key)) >= spoken);
    console.info(
      [
        `PostgreSQL away for ${awayMs / 1000} s: with a known key ${JSON.stringify(answers)}, at longest ${longestMs.toFixed(0)} ms`,
        `what needs it meanwhile, and the longest wait in ms: ${JSON.stringify(asked)}`,
        `keys are made again ${shown(made)} after its start; ${await countOf(key)} words of ${spoken} requests, the last ${arrived.toFixed(1)} s later`,
      ].join("\n"),
    );
    expect(Object.keys(answers)).toEqual(["200"]);
    expect(await countOf(key)).toBe(spoken);
    expect(Object.keys(asked).sort()).toEqual([
      "a key is made: 503 store_unavailable",
      "an unknown key: 401 unauthorized",
      "keys page: 503",
      "words: 503 store_unavailable",
    ]);
    expect(await spooled(), "nothing waits any more").toBe(0);
  });

  it("hangs under four callers and goes on: none with a known key hears of it", async () => {
    const key = await knownKey("patient");
    const load = callers([one, other], key);
    await postgres.hang();
    const began = performance.now();
    const { status, code } = await makeKey(one, { name: "hung" });
    const toldS = (performance.now() - began) / 1000;
    await sleep(5_000);
    await postgres.goOn();
    const { answers, longestMs } = await load.stop();
    console.info(
      `PostgreSQL hangs: with a known key ${JSON.stringify(answers)}, at longest ${longestMs.toFixed(0)} ms; a key that is made: ${status} after ${toldS.toFixed(1)} s`,
    );
    expect(Object.keys(answers)).toEqual(["200"]);
    expect({ status, code }).toEqual({ status: 503, code: "store_unavailable" });
    expect(toldS).toBeLessThan(25);
    await seconds(
      "keys are made again",
      async () => (await makeKey(other, { name: "again" })).status === 201,
    );
  });

  it("is away while an API pod is replaced: callers are left to the pod that has read the keys", async () => {
    const key = await knownKey("survivor");
    const service = await kubectl.get("service", `${name}-api`);
    await postgres.kill();
    const load = callers([`http://${service?.spec.clusterIP}:8000`], key);
    const [first] = await apiPods();
    const olds = (await apiPods()).map(({ pod }) => pod);
    await kubectl.do("delete", "pod", first?.pod ?? "", "--wait=false");
    const fresh = await eventually("a new pod that listens", async () => {
      const found = (await apiPods()).find(({ pod }) => !olds.includes(pod));
      const answer = await fetch(`${found?.url}/ready`).catch(() => undefined);
      return found && answer && { ...found, reason: await answer.text() };
    });
    await sleep(10_000);
    await world.condition(name, "ApiReady", "False", /1 of 2 pods.*database/);
    const direct = await speak(fresh.url, key);
    const { isReady } = (await apiPods()).find(({ pod }) => pod === fresh.pod) ?? fresh;
    const { answers } = await load.stop();
    await postgres.restart();
    const ready = await seconds("both are ready", async () => (await apiPods()).every((pod) => pod.isReady));
    console.info(
      `an API pod replaced while PostgreSQL is away: through the Service ${JSON.stringify(answers)}; the new one is ${isReady ? "ready" : `not ready (${fresh.reason})`}, answers ${direct.status}, and is ready ${ready.toFixed(1)} s after PostgreSQL`,
    );
    expect(Object.keys(answers)).toEqual(["200"]);
    expect(isReady).toBe(false);
    expect(direct).toMatchObject({ status: 503, code: "store_unavailable" });
    await lookForPods();
    for (const at of [one, other]) expect(await statusAt(at, key)).toBe(200);
  });
});

/** What needs PostgreSQL, again and again: how each was answered, with the longest wait in milliseconds. */
async function askWhileAway(durationMs: number): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  let began = performance.now();
  const note = (what: string) => {
    const now = performance.now();
    answers[what] = Math.max(answers[what] ?? 0, Math.round(now - began));
    began = now;
  };
  const unknown = createKey();
  const until = performance.now() + durationMs;
  for (let round = 0; performance.now() < until; round++) {
    const at = round % 2 === 0 ? one : other;
    began = performance.now();
    const { status, code } = await makeKey(at, { name: `away ${round}` });
    note(`a key is made: ${status} ${code}`);
    const words = await wordsAt(at, admin);
    note(`words: ${words.status} ${((await words.json()) as { code?: string }).code}`);
    note(`keys page: ${(await owner.get("/dashboard/keys")).status}`);
    const refused = await speak(at, unknown);
    note(`an unknown key: ${refused.status} ${refused.code}`);
    await sleep(500);
  }
  return answers;
}

/** Lines of words that wait in both pods. */
async function spooled(): Promise<number> {
  const script = `
    const { readdirSync, readFileSync } = require("node:fs");
    const lines = readdirSync("${paths.spool}").map((file) => readFileSync("${paths.spool}/" + file, "utf8").split("\\n").length - 1);
    console.log(lines.reduce((a, b) => a + b, 0));`;
  const counts = (await apiPods()).map(async ({ pod }) =>
    Number(await kubectl.exec(pod, "node", "-e", script)),
  );
  return (await Promise.all(counts)).reduce((a, b) => a + b, 0);
}

describe("the dashboard", () => {
  it("is where spec.api.dashboard is, and nowhere without it", async () => {
    const pageAt = async (at: string) => (await fetch(`${at}/dashboard/login`)).status;
    expect(await Promise.all([one, other].map(pageAt))).toEqual([200, 200]);
    expect(await kubectl.list("ingresses"), "inside the cluster alone").toEqual([]);
    const patch = JSON.stringify([{ op: "remove", path: "/spec/api/dashboard" }]);
    const before = [one, other];
    await kubectl.do("patch", "ttsd", name, "--type=json", "--patch", patch);
    await eventually(
      "new API pods",
      async () => {
        const pods = await apiPods();
        return pods.length === 2 && pods.every(({ url, isReady }) => isReady && !before.includes(url));
      },
      { seen: apiPods },
    );
    await lookForPods();
    expect(await Promise.all([one, other].map(pageAt))).toEqual([404, 404]);
    expect(await statusAt(other, admin), "keys of the database count on").toBe(200);
  });
});

const lexicon = `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="x-svc-tts" xml:lang="en">
  <lexeme><grapheme>${word}</grapheme><phoneme>z1Orbl2@ks</phoneme></lexeme>
</lexicon>
`;
