/**
 * Tests two API pods with one PostgreSQL and one Valkey: a change in one pod applies to the other pod, and
 * the pods share the limits.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { SharedAccounts, type Spoken } from "../../support/server/shared-accounts.ts";
import { Visitor } from "../../support/server/visitor.ts";

const accounts = new SharedAccounts(inject("cluster"));

beforeAll(() => accounts.open());
afterAll(() => accounts.close());

describe("two API pods", () => {
  it("share the first owner, and the set-up link works only once", async () => {
    const { one, other } = accounts;
    const token = await accounts.setupToken();
    const owner = new Visitor(one);
    const page = await owner.get(`/dashboard/setup?token=${token}`);
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining("Create the owner") });
    const person = { token, name: "ada", password: "four plain words here" };
    expect(await owner.post("/dashboard/setup", person)).toMatchObject({ status: 303 });
    expect(await owner.get("/dashboard/keys")).toMatchObject({ status: 200 });
    const late = new Visitor(other);
    expect((await late.get(`/dashboard/setup?token=${token}`)).headers.get("location")).toMatch(/login$/);
    expect(await late.post("/dashboard/setup", { ...person, name: "eve" })).toMatchObject({ status: 400 });
    late.cookie = owner.cookie;
    expect(await late.get("/dashboard/keys"), "valid in both pods").toMatchObject({ status: 200 });
    accounts.owner = owner;
  });

  it("accept a key that one pod created, also through the Service", async () => {
    await accounts.makeAdminKey();
    expect(accounts.admin).toMatch(/^svc_\w+$/);
    expect(await accounts.statusAt(await accounts.serviceUrl(), accounts.admin)).toBe(200);
  });

  it("both reject a revoked key", async () => {
    const { one, other } = accounts;
    const key = await accounts.knownKey("revoked");
    expect(await accounts.statusAt(other, key)).toBe(200);
    expect((await accounts.keysAt(one, "DELETE", "/revoked")).status).toBe(204);
    const began = performance.now();
    await eventually(
      "the other pod to reject the key",
      async () => (await accounts.statusAt(other, key)) === 401,
    );
    console.info(
      `revoked in one pod, rejected by the other pod after ${((performance.now() - began) / 1000).toFixed(1)} s`,
    );
    await eventually(
      "the first pod to reject the key",
      async () => (await accounts.statusAt(one, key)) === 401,
    );
  });

  it("share lexicon words: a word that one pod saves changes the speech of the other pod", async () => {
    const { one, other, owner } = accounts;
    const key = await accounts.knownKey("lexicon");
    const audioAt = async (at: string) => (await accounts.speak(at, key)).audio;
    const before = await audioAt(other);
    expect((await audioAt(one)).equals(before), "both pods return the same audio").toBe(true);
    await owner.get("/dashboard/words");
    await owner.upload("/dashboard/words/import", { team: "" }, lexicon(accounts.word));
    await eventually("the other pod to use the word", async () => !(await audioAt(other)).equals(before));
    await eventually("both pods to return the same audio", async () =>
      (await audioAt(one)).equals(await audioAt(other)),
    );
  });

  it("share the requests per minute of a key", async () => {
    const limit = 20;
    let attempts = 0;
    // An attempt fails if a new minute begins, or if a pod counts locally because Valkey did not respond.
    const statuses = await eventually("a minute in which the pods count requests together", async () => {
      const key = await accounts.knownKey(`limited ${attempts++}`, { requestsPerMinute: limit });
      const answers: Spoken[] = [];
      for (let i = 0; i < limit / 2 + 2; i++) {
        for (const at of accounts.pods) answers.push(await accounts.speak(at, key, "Yes."));
      }
      const resets = answers.map(({ headers }) => Number(headers.get("ratelimit-reset")));
      const isOneMinute = resets.every((reset, i) => i === 0 || reset <= (resets[i - 1] ?? 0));
      const remaining = answers.slice(0, limit).map(({ headers }) => headers.get("ratelimit-remaining"));
      const isShared = new Set(remaining).size === limit;
      return isOneMinute && isShared && answers.map(({ status }) => status);
    });
    expect(statuses).toEqual([...Array(limit).fill(200), ...Array(4).fill(429)]);
  });
});

describe("the dashboard", () => {
  it("exists only if spec.api.dashboard is set", async () => {
    const { pods, admin, world, name } = accounts;
    const pageAt = async (at: string) => (await fetch(`${at}/dashboard/login`)).status;
    expect(await Promise.all(pods.map(pageAt))).toEqual([200, 200]);
    expect(await world.kubectl.list("ingresses"), "no Ingress exposes the dashboard").toEqual([]);
    const patch = JSON.stringify([{ op: "remove", path: "/spec/api/dashboard" }]);
    await world.kubectl.do("patch", "ttsd", name, "--type=json", "--patch", patch);
    await accounts.findPods(pods);
    expect(await Promise.all(accounts.pods.map(pageAt))).toEqual([404, 404]);
    expect(await accounts.statusAt(accounts.other, admin), "keys of the database remain valid").toBe(200);
  });
});

const lexicon = (word: string) => `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="x-svc-tts" xml:lang="en">
  <lexeme><grapheme>${word}</grapheme><phoneme>z1Orbl2@ks</phoneme></lexeme>
</lexicon>
`;
