import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { audioFormats, streamTypes } from "../../../../server/api/request/variants.ts";
import type { ApiSettings } from "../../../../server/start/api-settings.ts";
import type { ApiEnvironment } from "../../../../server/start/api-tier.ts";
import { writeAudit } from "../../../../server/store/audit.ts";
import { openDatabase } from "../../../../server/store/database/database.ts";
import { createKey, type KeyFacts } from "../../../../server/store/keys/key.ts";
import { openKeyTableBook } from "../../../../server/store/keys/key-table.ts";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { addSignedInUser, keyOn, newKey, type Page, Visitor } from "../../../support/server/visitor.ts";

const clock = new FakeClock();
const setupToken = "a-long-text-that-the-server-made-for-its-first-owner";
const password = "four plain words here";

const folder = folderOfTests("dashboard");
writeFileSync(join(folder, "setup"), `${setupToken}\n`);

let model: ScriptedModel;
let database: string;
let api: TestApi;
let owner: Visitor;

beforeAll(async () => {
  model = await startScriptedModel(speakTone(0.1));
});
beforeEach(async () => {
  database = join(mkdtempSync(join(folder, "db-")), "svc-tts.db");
  api = await start("http://127.0.0.1:8000");
  owner = new Visitor(api.url);
});
afterEach(() => api.stop());
afterAll(() => model.close());

function start(
  url: string,
  setup = "setup",
  more: Partial<ApiSettings> = {},
  environment: ApiEnvironment = {},
): Promise<TestApi> {
  const dashboard = { url, setupFile: join(folder, setup) };
  return startTestApi(model.url, { database, dashboard, ...more }, { clock, ...environment });
}

/**
 * Restarts the server with other settings, and with the same users and keys. The owner's session remains
 * valid.
 */
async function restart(settings: Partial<ApiSettings>, environment: ApiEnvironment = {}): Promise<void> {
  await api.stop();
  api = await start("http://127.0.0.1:8000", "setup", settings, environment);
  owner = Object.assign(new Visitor(api.url), { cookie: owner.cookie });
}

function setUp(visitor: Visitor, more: Record<string, string> = {}): Promise<Page> {
  return visitor.post("/dashboard/setup", { token: setupToken, name: "Ada", password, ...more });
}

function addUser(name: string, role: string, team: string): Promise<Visitor> {
  return addSignedInUser(owner, api.url, { name, role, team, password });
}

async function statusOf(key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, accept: "audio/pcm" };
  const answer = await api.post({ speaker: "abbie", text: "Hello." }, headers);
  await answer.arrayBuffer();
  return answer.status;
}

describe("the first owner", () => {
  it("can be created once with the set-up link", async () => {
    expect((await owner.get("/dashboard")).headers.get("location")).toBe("/dashboard/setup");
    expect((await owner.get("/dashboard/login")).headers.get("location")).toBe("/dashboard/setup");
    const wrong = await setUp(owner, { token: "another" });
    expect([wrong.status, wrong.setCookie]).toEqual([400, undefined]);
    const weak = await setUp(owner, { password: "short" });
    expect(weak.text).toContain("A password must have 12 to 256 characters; this password has 5.");
    const created = await setUp(owner);
    expect(created.headers.get("location")).toBe("/dashboard/keys");
    expect(created.setCookie).toMatch(/^svc-tts=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    expect((await owner.get("/dashboard/keys")).text).toContain("ada");
    const second = await setUp(new Visitor(api.url), { name: "eve" });
    expect(second.text).toContain("already has an owner");
    expect((await owner.get("/dashboard/setup")).headers.get("location")).toBe("/dashboard/login");
  });

  it("cannot be created if the server has no set-up link", async () => {
    await api.stop();
    api = await start("http://127.0.0.1:8000", "none");
    const rejected = await setUp(new Visitor(api.url));
    expect(rejected.status).toBe(400);
    expect(rejected.text).toContain("This link is not valid");
  });

  it("has a cookie that browsers send only over TLS if the dashboard uses TLS", async () => {
    await api.stop();
    api = await start("https://tts.example.com");
    const created = await setUp(new Visitor(api.url));
    expect(created.setCookie).toMatch(/^__Host-svc-tts=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
    expect(created.headers.get("strict-transport-security")).toBe("max-age=31536000");
  });
});

describe("a sign-in", () => {
  beforeEach(() => setUp(owner));

  it("rejects JSON and forms above 64 KiB, also on pages that need no session", async () => {
    const send = async (page: string, type: string, body: string) => {
      const headers = { "content-type": type, "sec-fetch-site": "same-origin", cookie: owner.cookie };
      const init = { method: "POST", redirect: "manual", headers, body } as const;
      return (await fetch(`${api.url}/dashboard/${page}`, init)).status;
    };
    const form = `name=${"a".repeat(64 * 1024)}`;
    for (const page of ["login", "setup", "join", "language", "account/password", "keys", "people"]) {
      expect([page, await send(page, "application/json", "{}")]).toEqual([page, 415]);
      expect([page, await send(page, "application/x-www-form-urlencoded", form)]).toEqual([page, 413]);
    }
  });

  it("accepts the name in any case and only the exact password, and the session ends at the sign-out", async () => {
    const visitor = new Visitor(api.url);
    expect((await visitor.get("/dashboard/keys")).headers.get("location")).toBe("/dashboard/login");
    const refused = [
      await visitor.post("/dashboard/login", { name: "ada", password: `${password} ` }),
      await visitor.post("/dashboard/login", { name: "unknown", password }),
    ];
    for (const { status, text, setCookie } of refused) {
      expect([status, setCookie]).toEqual([401, undefined]);
      expect(text).toContain("The name or the password is wrong.");
    }
    await visitor.post("/dashboard/login", { name: "ADA", password });
    expect((await visitor.get("/dashboard/keys")).status).toBe(200);
    const { cookie } = visitor;
    expect((await visitor.post("/dashboard/logout", {})).status).toBe(303);
    visitor.cookie = cookie; // The copy of the cookie is no longer valid.
    expect((await visitor.get("/dashboard/keys")).headers.get("location")).toBe("/dashboard/login");
  });

  it("is rejected before it is written to the audit log, so that the time of the response does not depend on the name", async () => {
    const other = new DatabaseSync(database);
    other.exec("BEGIN IMMEDIATE"); // This locks the database, so that no audit entry can be written.
    try {
      const refused = await new Visitor(api.url).post("/dashboard/login", { name: "ada", password: "wrong" });
      expect(refused.status).toBe(401);
    } finally {
      other.exec("ROLLBACK");
      other.close();
    }
  });

  it("is in the audit log with its address, also if it was rejected, and unknown names are not recorded", async () => {
    const lines: Record<string, unknown>[] = [];
    const logTo = { write: (line: string) => void lines.push(JSON.parse(line)) };
    await restart({ trustedProxies: ["127.0.0.0/8"], logLevel: "info" }, { logTo });
    const visitor = new Visitor(api.url);
    const source = "2001:db8::7";
    const from = { "x-forwarded-for": source };
    const unknownName = "Kwyjibo-12345678";
    await visitor.post("/dashboard/login", { name: unknownName, password: "x" }, from);
    await visitor.post("/dashboard/login", { name: "ada", password: "wrong" }, from);
    await visitor.post("/dashboard/login", { name: "ada", password }, from);
    await visitor.get("/dashboard/keys");
    await visitor.post("/dashboard/keys", { name: "app", scopes: "tts:write" }, from);
    const headers = { authorization: "Bearer wrong", ...from };
    await fetch(`${api.url}/v1/voices`, { headers });
    await fetch(`${api.url}/v1/svc-tts`, { method: "POST", headers, body: "{}" });
    const facts = (message: string) => lines.filter(({ msg }) => msg === message);
    expect(facts("a sign-in was rejected")).toMatchObject([{ source }, { source, person: "ada" }]);
    expect(facts("a user signed in")).toMatchObject([{ source, person: "ada" }]);
    expect(facts("request").filter(({ status }) => status === 401)).toMatchObject([
      { source, endpoint: "/dashboard/login" },
      { source, endpoint: "/dashboard/login" },
      { source, endpoint: "/v1/svc-tts" },
    ]);
    const made = facts("request").find(
      ({ endpoint, method }) => `${method} ${endpoint}` === "POST /dashboard/keys",
    );
    expect(made).toMatchObject({ source, person: "ada", status: 200 });
    expect(JSON.stringify(lines)).not.toMatch(/kwyjibo/i);
    const { text } = await visitor.get("/dashboard/changes");
    expect(text).toContain(
      "<td>unknown user</td><td>sign-in rejected</td><td>unknown user</td><td>from 2001:db8::7</td>",
    );
    expect(text).not.toMatch(/kwyjibo/i);
  });

  it("is limited after ten wrong passwords from one network, while sessions and other networks continue", async () => {
    await restart({ trustedProxies: ["127.0.0.0/8"] });
    const visitor = new Visitor(api.url);
    const signIn = async (from: string, tried: string) => {
      const headers = { "x-forwarded-for": from };
      return (await visitor.post("/dashboard/login", { name: "ada", password: tried }, headers)).status;
    };
    const statuses: number[] = [];
    for (let i = 0; i < 11; i++) {
      // The proxy adds the last address. A client can invent the addresses before it.
      statuses.push(await signIn(`198.51.100.${i}, 2001:db8::${i}`, `guess number ${i}`));
    }
    expect(statuses).toEqual([...Array(10).fill(401), 429]);
    expect(await signIn("2001:db8::abcd", password)).toBe(429);
    expect((await owner.get("/dashboard/keys")).status).toBe(200);
    expect(await signIn("2001:db8:0:1::1", password)).toBe(303);
  });

  it("is not limited because of invalid forms at /setup and /join", async () => {
    const visitor = new Visitor(api.url);
    const junk = Array.from({ length: 210 }, () => setUp(visitor, { token: "junk" }));
    for (const { status } of await Promise.all(junk)) expect(status).toBe(400);
    for (let i = 0; i < 11; i++) {
      const invalid = await visitor.post("/dashboard/join", { link: `junk ${i}`, password });
      expect(invalid.status).toBe(404);
    }
    expect((await visitor.post("/dashboard/login", { name: "ada", password })).status).toBe(303);
    expect((await (await addUser("bob", "member", "blue")).get("/dashboard/keys")).status).toBe(200);
  });

  it("is listed as a session of the user, and each session can end the others", async () => {
    const [one, other] = [new Visitor(api.url), new Visitor(api.url)];
    for (const visitor of [one, other]) await visitor.post("/dashboard/login", { name: "ada", password });
    const { text } = await owner.get("/dashboard/account");
    expect(text.match(/current session/g)).toHaveLength(1);
    const ids = Array.from(text.matchAll(/name="id" value="([0-9a-f]{64})"/g), ([, id]) => id ?? "");
    expect(ids).toHaveLength(2);
    await owner.post("/dashboard/account/end", { id: ids[0] ?? "" });
    const isSignedIn = async (visitor: Visitor) => (await visitor.get("/dashboard/keys")).status === 200;
    expect([await isSignedIn(one), await isSignedIn(other)].toSorted()).toEqual([false, true]);
    await owner.get("/dashboard/account");
    await owner.post("/dashboard/account/end-others", {});
    expect([await isSignedIn(one), await isSignedIn(other), await isSignedIn(owner)]).toEqual([
      false,
      false,
      true,
    ]);
  });

  it("can be given a new password with the current one, which ends every other session", async () => {
    const other = new Visitor(api.url);
    await other.post("/dashboard/login", { name: "ada", password });
    await owner.get("/dashboard/account");
    const next = "another four plain words";
    const change = (current: string, newPassword: string) =>
      owner.post("/dashboard/account/password", { current, password: newPassword });
    const guessed = await change("not the password", next);
    expect([guessed.status, guessed.text]).toEqual([
      400,
      expect.stringContaining("current password is wrong"),
    ]);
    const rejectedEntries = (await owner.get("/dashboard/changes")).text.match(/<td>sign-in rejected<\/td>/g);
    expect(rejectedEntries).toHaveLength(1);
    await owner.get("/dashboard/account");
    for (let i = 0; i < 11; i++) {
      expect((await change(password, "short")).text).toContain("A password must have 12 to 256 characters");
    }
    const { cookie } = owner;
    const changed = await change(password, next);
    expect(changed.headers.get("location")).toBe("/dashboard/account?changed");
    expect((await owner.get("/dashboard/account?changed")).text).toContain("Your password was changed");
    expect(owner.cookie).not.toBe(cookie);
    for (const visitor of [other, Object.assign(new Visitor(api.url), { cookie })]) {
      expect((await visitor.get("/dashboard/keys")).headers.get("location")).toBe("/dashboard/login");
    }
    expect((await other.post("/dashboard/login", { name: "ada", password })).status).toBe(401);
    expect((await other.post("/dashboard/login", { name: "ada", password: next })).status).toBe(303);
    expect((await owner.get("/dashboard/changes")).text).toContain("<td>password set</td>");
  });

  it("rejects forms of other sites, and forms without the token of the session", async () => {
    await owner.get("/dashboard/keys");
    const form = { name: "stolen", scopes: "tts:write" };
    const elsewhere = await owner.post("/dashboard/keys", form, { "sec-fetch-site": "cross-site" });
    const sibling = await owner.post("/dashboard/keys", form, { "sec-fetch-site": "same-site" });
    const tokenless = await owner.post("/dashboard/keys", { ...form, csrf: "guessed" });
    expect([elsewhere, sibling, tokenless].map(({ status }) => status)).toEqual([403, 403, 403]);
    const login = { name: "ada", password };
    const forced = await new Visitor(api.url).post("/dashboard/login", login, {
      "sec-fetch-site": "cross-site",
    });
    expect([forced.status, forced.setCookie]).toEqual([403, undefined]);
    expect((await owner.get("/dashboard/keys")).text).not.toContain("stolen");
  });

  it("protects its pages against scripts of other sites and against frames", async () => {
    const { headers, text } = await owner.post("/dashboard/login", {
      name: "<script>alert(1)</script>",
      password: "x",
    });
    expect(headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'");
    expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("same-origin");
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect(text).not.toContain("<script>");
    expect(text).not.toMatch(/(src|href|action)="https?:/);
  });
});

describe("the Keys page", () => {
  beforeEach(() => setUp(owner));

  it("creates a valid key, shows it once, counts its use, and revokes it", async () => {
    const key = await newKey(owner, "app", { streams: "3" });
    await eventuallyOn(clock, "the server to accept the key", async () => (await statusOf(key)) === 200);
    const page = await owner.get("/dashboard/keys");
    expect(page.text).toContain("3 concurrent streams");
    expect(page.text).not.toContain(key);
    const fresh = keyOn(await owner.post("/dashboard/keys/rotate", { key: "app", overlapHours: "1" })) ?? "";
    await eventuallyOn(
      clock,
      "the server to accept the new secret",
      async () => (await statusOf(fresh)) === 200,
    );
    expect(await statusOf(key)).toBe(200);
    await eventuallyOn(clock, "the use of the key on the page", async () =>
      /\d today/.test((await owner.get("/dashboard/keys")).text),
    );
    await owner.post("/dashboard/keys/revoke", { key: "app" });
    await eventuallyOn(clock, "the server to reject the key", async () => (await statusOf(key)) === 401);
    expect(await statusOf(fresh)).toBe(401);
  });

  it("shows each error beside its field, keeps the entered values, and creates no key", async () => {
    await owner.get("/dashboard/keys");
    const wrong = { name: "=cmd()", scopes: "tts:write", streams: "0", expiresAt: "2001-01-01" };
    const page = await owner.post("/dashboard/keys", wrong);
    expect(page.status).toBe(400);
    expect(page.text).toMatch(/id="name-help" class="wrong">must be 1 to 64 letters/);
    expect(page.text).toMatch(/id="streams-help" class="wrong">must be an integer from 1 to 1000000, not 0/);
    expect(page.text).toMatch(/id="expiresAt-help" class="wrong">must be a future time/);
    expect(page.text).toContain('value="2001-01-01"');
    expect(page.text).toContain("There are no keys yet.");
    await newKey(owner, "app");
    expect(await newKey(owner, "app")).toBe("no key: 409");
    const taken = await owner.post("/dashboard/keys", { name: "app", scopes: "tts:write" });
    expect(taken.text).toMatch(/id="name-help" class="wrong">app is in use; key names are unique/);
  });

  it("shows members and viewers only the keys of their team, and rejects changes by viewers", async () => {
    await newKey(owner, "red-app", { team: "red" });
    const member = await addUser("bob", "member", "blue");
    expect(await newKey(member, "blue-app")).toMatch(/^svc_/);
    expect(await newKey(member, "sly", { team: "red" })).toBe("no key: 400");
    const page = await member.get("/dashboard/keys");
    expect(page.text).toContain("blue-app");
    expect(page.text).not.toContain("red-app");
    for (const path of ["revoke", "rotate"]) {
      const fields = { key: "red-app", overlapHours: "0" };
      expect((await member.post(`/dashboard/keys/${path}`, fields)).status).toBe(404);
    }
    for (const path of ["people", "changes"])
      expect((await member.get(`/dashboard/${path}`)).status).toBe(403);
    const viewer = await addUser("eve", "viewer", "red");
    expect((await viewer.get("/dashboard/keys")).text).toContain("red-app");
    expect(await newKey(viewer, "mine")).toBe("no key: 403");
    const changes = (await owner.get("/dashboard/changes")).text;
    expect(changes).toContain("<td>bob</td><td>key created</td><td>blue-app</td><td>tts:write of blue</td>");
  });
});

describe("a member's keys", () => {
  beforeEach(() => setUp(owner));

  it("cannot have the scope admin or exceed the server's limits, and only owners rotate an admin key", async () => {
    await restart({ keyLimits: { streams: 4 } });
    const member = await addUser("bob", "member", "blue");
    expect((await member.get("/dashboard/keys")).text).not.toContain('value="admin"');
    expect(await newKey(member, "root", { scopes: "admin" })).toBe("no key: 400");
    expect(await newKey(member, "fast", { streams: "5" })).toBe("no key: 400");
    expect(await newKey(member, "app", { streams: "4", requestsPerMinute: "1000" })).toMatch(/^svc_/);
    const more = { scopes: "admin", team: "blue", streams: "5" };
    expect(await newKey(owner, "blue-root", more)).toMatch(/^svc_/);
    const rotate = (visitor: Visitor) =>
      visitor.post("/dashboard/keys/rotate", { key: "blue-root", overlapHours: "24" });
    await member.get("/dashboard/keys");
    expect((await rotate(member)).status).toBe(403);
    await owner.get("/dashboard/keys");
    expect((await rotate(owner)).text).toContain('id="new-key"');
  });
});

describe("the playground", () => {
  beforeEach(() => setUp(owner));

  /** Sends the request of the page's script, with the page's token. */
  async function speak(visitor: Visitor, body: object, more: Record<string, string> = {}) {
    const page = await visitor.get("/dashboard/playground");
    const csrf = /name="csrf" value="([^"]+)"/.exec(page.text)?.[1] ?? "";
    const headers = {
      "content-type": "application/json",
      accept: "audio/pcm",
      cookie: visitor.cookie,
      "sec-fetch-site": "same-origin",
      "x-csrf-token": csrf,
      ...more,
    };
    const url = `${api.url}/dashboard/playground/speech`;
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    const bytes = Buffer.from(await answer.arrayBuffer());
    return { status: answer.status, type: answer.headers.get("content-type"), bytes };
  }

  it.each([
    ["mist", "abbie", 1_000],
    ["mistv2", "abbie", 1_000],
    ["arcana", "luna", 3_000],
  ])("accepts texts for %s with the voice %s of at most %i characters", async (modelId, speaker, limit) => {
    const text = `${"a ".repeat(limit / 2 - 1)}🎈b`;
    expect([...text]).toHaveLength(limit);
    const spoken = await speak(owner, { modelId, speaker, text });
    expect(spoken).toMatchObject({ status: 200, type: "audio/pcm" });
    const refused = await speak(owner, { modelId, speaker, text: `${text}.` });
    expect(refused.status).toBe(400);
    expect(JSON.parse(String(refused.bytes)).detail).toContain(
      `has ${limit + 1} characters; the limit with ${modelId} in the dashboard is ${limit}`,
    );
    const throughApi = await api.post({ modelId, speaker, text });
    expect(throughApi.status).toBe(modelId === "arcana" ? 200 : 400);
  });

  it("offers every audio format with the media type that its script requests", async () => {
    const { text } = await owner.get("/dashboard/playground");
    const options = text.matchAll(/<option data-media-type="([^"]+)">(\w+)<\/option>/g);
    const offered = [...options].map(([, mediaType, format]) => [format, mediaType]);
    expect(offered).toEqual(audioFormats.map((format) => [format, streamTypes[format][0]]));
  });

  it("serves only signed-in owners and members, and only requests of its own site", async () => {
    // An element with a label must have a role that supports labels (ARIA).
    expect((await owner.get("/dashboard/playground")).text).toContain('<p id="words" role="group"');
    const body = { modelId: "mist", speaker: "abbie", text: "Hello." };
    const viewer = await addUser("eve", "viewer", "red");
    const signedOut = new Visitor(api.url);
    const answers = [
      await speak(await addUser("bob", "member", "red"), body),
      await speak(viewer, body),
      await speak(signedOut, body),
      await speak(owner, body, { "sec-fetch-site": "cross-site" }),
      await speak(owner, body, { "x-csrf-token": "guessed" }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 403, 401, 403, 403]);
  });
});

describe("users", () => {
  beforeEach(() => setUp(owner));

  it("can be removed with their sessions and keys, except the last owner", async () => {
    const member = await addUser("bob", "member", "blue");
    const page = await owner.get("/dashboard/people");
    const [own = "", bobs = ""] = [...page.text.matchAll(/name="id" value="([\w-]+)"/g)]
      .map(([, id]) => id)
      .filter((_, i) => i % 2 === 0);
    expect(page.text).not.toContain("revokeKeys");
    await newKey(member, "bobs-app");
    expect((await owner.get("/dashboard/people")).text).toContain("created or rotated: bobs-app");
    const removal = { id: bobs, revokeKeys: "on" };
    expect((await owner.post("/dashboard/people/remove", removal)).status).toBe(303);
    expect((await owner.get("/dashboard/keys")).text).not.toContain("bobs-app");
    await owner.get("/dashboard/people");
    expect((await member.get("/dashboard/keys")).headers.get("location")).toBe("/dashboard/login");
    const refused = await owner.post("/dashboard/people/remove", { id: own });
    expect(refused.text).toContain("This user is the only owner");
  });

  it("can use a link once, which ends their other sessions", async () => {
    const member = await addUser("bob", "member", "blue");
    const page = await owner.get("/dashboard/people");
    const id = [...page.text.matchAll(/name="id" value="([\w-]+)"/g)].at(-1)?.[1] ?? "";
    const made = await owner.post("/dashboard/people/link", { id });
    const link = /join\?link=([\w-]+)/.exec(made.text)?.[1] ?? "";
    const again = new Visitor(api.url);
    expect((await again.get(`/dashboard/join?link=${link}`)).text).toContain("bob");
    const next = { link, password: "another four plain words" };
    expect((await again.post("/dashboard/join", next)).status).toBe(303);
    expect((await again.get("/dashboard/keys")).status).toBe(200);
    expect((await member.get("/dashboard/keys")).headers.get("location")).toBe("/dashboard/login");
    expect((await again.post("/dashboard/join", { link, password })).status).toBe(404);
  });
});

it("the audit log is shown in pages, and entries are deleted after the configured time", async () => {
  await setUp(owner);
  const opened = openDatabase(database);
  const at = (i: number) => Date.UTC(2020, 0, 1) + i;
  const entry = { actor: "ada", action: "signed in" } as const;
  await opened.run((db) =>
    db.transaction().execute(async (trx) => {
      for (let i = 0; i < 450; i++) await writeAudit(trx, { ...entry, subject: `change-${i}` }, at(i));
    }),
  );
  await opened.close();
  const pages: string[][] = [];
  for (let link: string | undefined = "/dashboard/changes"; link !== undefined; ) {
    const { text } = await owner.get(link);
    pages.push(Array.from(text.matchAll(/<td>change-(\d+)<\/td>/g), ([, i]) => i ?? ""));
    link = /href="(\/dashboard\/changes\?older=[^"]+)"/.exec(text)?.[1];
  }
  expect(pages.map(({ length }) => length)).toEqual([199, 200, 51]); // The first page also has the entry of the owner's set-up.
  expect(new Set(pages.flat()).size).toBe(450);
  expect((await owner.get("/dashboard/changes?older=nonsense")).status).toBe(200);
  await restart({ dashboard: { url: "http://127.0.0.1:8000", setupFile: undefined, auditDays: 30 } });
  await eventuallyOn(clock, "the deletion of the old entries", async () => {
    const { text } = await owner.get("/dashboard/changes");
    return text.includes("user added") && !text.includes("change-");
  });
});

describe("/v1/keys", () => {
  const call = async (method: string, path: string, key: string, body?: object) => {
    const answer = await fetch(`${api.url}/v1/keys${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  };

  async function adminKey(facts: Partial<KeyFacts>): Promise<string> {
    const key = createKey();
    const opened = openDatabase(database);
    await openKeyTableBook(opened, () => clock.nowMs()).create(key, {
      name: "root",
      scopes: ["admin"],
      ...facts,
    });
    await opened.close();
    await eventuallyOn(
      clock,
      "the server to accept the key",
      async () => (await call("GET", "", key)).status === 200,
    );
    return key;
  }

  it("lets a key with the scope admin create, list, rotate and revoke keys", async () => {
    const admin = await adminKey({});
    const facts = { name: "app", streams: 2, scopes: ["tts:write", "oov:read"] };
    const made = await call("POST", "", admin, facts);
    expect(made).toMatchObject({ status: 201, body: { name: "app", key: expect.stringMatching(/^svc_/) } });
    await eventuallyOn(
      clock,
      "the server to accept the created key",
      async () => (await statusOf(made.body.key)) === 200,
    );
    expect((await call("GET", "", made.body.key)).status).toBe(403);
    const again = await call("POST", "", admin, { name: "app" });
    expect(again).toMatchObject({
      status: 409,
      body: {
        code: "name_taken",
        detail: expect.stringContaining('The name "app" is used by an existing API key'),
        errors: [{ pointer: "/name", detail: '"app" is in use; key names are unique over all teams' }],
      },
    });
    expect((await call("POST", "", admin, { name: "" })).body.errors[0].pointer).toBe("/name");
    const rotated = await call("POST", "/app/rotate", admin, { overlapHours: 0 });
    await eventuallyOn(
      clock,
      "the server to accept the rotated key",
      async () => (await statusOf(rotated.body.key)) === 200,
    );
    expect(await statusOf(made.body.key)).toBe(401);
    const { keys } = (await call("GET", "", admin)).body;
    expect(keys).toMatchObject([{ name: "app", streams: 2, team: null, secrets: [{}] }, { name: "root" }]);
    expect(JSON.stringify(keys)).not.toContain("svc_");
    expect((await call("DELETE", "/app", admin)).status).toBe(204);
    expect((await call("DELETE", "/app", admin)).status).toBe(404);
  });

  it("limits an admin key of a team to that team", async () => {
    const admin = await adminKey({ team: "blue" });
    expect((await call("POST", "", admin, { name: "app" })).status).toBe(201);
    expect((await call("POST", "", admin, { name: "sly", team: "red" })).status).toBe(400);
    const adminOfTeam = await call("POST", "", admin, { name: "heir", scopes: ["admin"] });
    expect([adminOfTeam.status, adminOfTeam.body.errors[0].pointer]).toEqual([400, "/scopes"]);
    expect((await call("GET", "", admin)).body.keys[0]).toMatchObject({ name: "app", team: "blue" });
    const opened = openDatabase(database);
    const facts: KeyFacts = { name: "red-app", team: "red", scopes: ["tts:write"] };
    await openKeyTableBook(opened, () => clock.nowMs()).create(createKey(), facts);
    await opened.close();
    expect((await call("DELETE", "/red-app", admin)).status).toBe(404);
  });
});

describe("a server without a dashboard", () => {
  it("has no dashboard pages, and no /v1/keys without a database", async () => {
    const plain = await startTestApi(model.url);
    for (const path of ["/dashboard", "/dashboard/login", "/v1/keys"]) {
      expect((await fetch(`${plain.url}${path}`)).status).toBe(404);
    }
    await plain.stop();
  });
});
