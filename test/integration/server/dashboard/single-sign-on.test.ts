import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { OidcSettings } from "../../../../server/dashboard/oidc/settings.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { leasePort } from "../../../support/port-lease.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import {
  startTestProvider,
  type TestAccount,
  type TestProvider,
} from "../../../support/server/oidc-provider.ts";
import { startPostgres, type TestPostgres } from "../../../support/server/postgres.ts";
import { invited, type Page, Visitor } from "../../../support/server/visitor.ts";

const url = "https://tts.example.com";
const password = "four plain words here";
const ada: TestAccount = {
  subject: "a1",
  claims: { preferred_username: "Ada", groups: ["staff", "speech"] },
};
const root: TestAccount = { subject: "r1", claims: { preferred_username: "root", groups: ["admins"] } };

const folder = folderOfTests("sso");
writeFileSync(join(folder, "setup"), "setup");

let postgres: TestPostgres;
let provider: TestProvider;
let api: TestApi;
/** The server of the current test. */
let apiOfTest: TestApi | undefined;
let database: string;

beforeAll(async () => {
  postgres = await startPostgres();
  provider = await startTestProvider([`${url}/dashboard/oidc/callback`]);
  writeFileSync(join(folder, "secret"), `${provider.clientSecret}\n`);
});
beforeEach(() => {
  provider.codesAreOld = false;
});
afterEach(async () => {
  await apiOfTest?.stop();
  apiOfTest = undefined;
});
afterAll(async () => {
  await provider.close();
  await postgres.stop();
});

async function start(databaseUrl: string, more: Partial<OidcSettings> = {}): Promise<void> {
  apiOfTest = await serve(databaseUrl, more);
}

async function serve(databaseUrl: string, more: Partial<OidcSettings> = {}): Promise<TestApi> {
  database = databaseUrl;
  const oidc: OidcSettings = {
    issuer: provider.issuer,
    clientId: provider.clientId,
    clientSecretFile: join(folder, "secret"),
    caFile: undefined,
    name: "Example Login",
    scopes: "openid profile email",
    groupsClaim: "groups",
    groups: [
      { group: "admins", role: "owner" },
      { group: "speech", role: "member", team: "blue" },
      { group: "auditors", role: "viewer", team: "red" },
    ],
    ...more,
  };
  const dashboard = { url, setupFile: join(folder, "setup"), oidc };
  api = await startTestApi({}, { database, dashboard });
  return api;
}

function newFile(): string {
  return join(mkdtempSync(join(folder, "db-")), "svc-tts.db");
}

/** Starts a sign-in. Returns the URL of the provider to which the server redirects the browser. */
async function begin(visitor: Visitor, path = "/dashboard/oidc/start"): Promise<URL> {
  const { status, headers, text } = await visitor.get(path, { "sec-fetch-site": "same-origin" });
  if (status !== 303) throw new Error(`status ${status}: ${text}`);
  return new URL(headers.get("location") ?? "");
}

async function signInAs(account: TestAccount, visitor = new Visitor(api.url), path?: string) {
  provider.account = account;
  const back = await provider.visit(await begin(visitor, path));
  return { visitor, back, page: await visitor.get(`${back.pathname}${back.search}`) };
}

function alertOf({ text }: Page): string | undefined {
  return /role="alert">([^<]*)</.exec(text)?.[1]?.replaceAll("&#39;", "'");
}

/** Returns the signed-in user as `name: role`, from the page of keys. */
async function signedInUser(visitor: Visitor): Promise<string | undefined> {
  const { text } = await visitor.get("/dashboard/keys");
  return /<span>(\S+) <span class="quiet">\(([^)]*)\)/.exec(text)?.slice(1).join(": ");
}

/** @returns the secret of the invitation link */
const invite = (owner: Visitor, name: string) => invited(owner, { name, role: "member", team: "red" });

async function changes(owner: Visitor): Promise<string[]> {
  const { text } = await owner.get("/dashboard/changes");
  return [...text.matchAll(/<tr><td><time[^>]*>[^<]*<\/time><\/td>(.*?)<\/tr>/g)].map(([, row = ""]) =>
    row.replaceAll(/<td>|<\/td>$/g, "").replaceAll("</td>", " | "),
  );
}

async function firstOwner(): Promise<Visitor> {
  const owner = new Visitor(api.url);
  await owner.post("/dashboard/setup", { token: "setup", name: "boss", password });
  return owner;
}

describe.each([
  ["SQLite", async () => newFile()],
  ["PostgreSQL", () => postgres.newDatabase()],
])("users of an identity provider, in %s", (_, newDatabase) => {
  beforeEach(async () => start(await newDatabase()));

  it("need a group to sign in, have the role of their groups at each sign-in, and lose access with their groups", async () => {
    const first = await signInAs(root);
    expect(first.page.headers.get("location")).toBe("/dashboard/keys");
    expect(await signedInUser(first.visitor)).toBe("root: owner");
    const member = await signInAs(ada);
    expect(await signedInUser(member.visitor)).toBe("ada: member of blue");
    const otherGroup = await signInAs({
      ...ada,
      claims: { groups: "auditors", preferred_username: "renamed" },
    });
    expect(await signedInUser(otherGroup.visitor)).toBe("ada: viewer of red");
    expect(await signedInUser(member.visitor)).toBe("ada: viewer of red");
    const withoutGroups = await signInAs({ ...ada, claims: {} });
    expect([withoutGroups.page.status, alertOf(withoutGroups.page)]).toEqual([
      403,
      "None of your groups grants access any more. Ask an owner.",
    ]);
    expect(await signedInUser(otherGroup.visitor)).toBeUndefined();
    expect((await changes(first.visitor)).toSorted()).toEqual([
      "ada | sign-in rejected | ada | with Example Login: None of your groups grants access any more. Ask an owner.",
      "ada | signed in | ada | with Example Login",
      "ada | signed in | ada | with Example Login",
      "ada | user added | ada | member of blue, from a group",
      "ada | user changed | ada | viewer of red, from a group",
      "root | signed in | root | with Example Login",
      "root | user added | root | owner, from a group",
    ]);
  });

  it("invalidate the set-up link with their first owner, also when the only owner loses the role", async () => {
    await signInAs(root);
    await signInAs({ ...root, claims: { groups: ["auditors"] } });
    const late = new Visitor(api.url);
    const rejected = await late.post("/dashboard/setup", { token: "setup", name: "mallory", password });
    expect([rejected.status, alertOf(rejected)]).toEqual([
      400,
      "The dashboard already has an owner; sign in instead.",
    ]);
    expect((await late.get("/dashboard/setup")).headers.get("location")).toBe("/dashboard/login");
    expect((await late.get("/dashboard/login")).status).toBe(200);
    expect(await signedInUser((await signInAs(root)).visitor)).toBe("root: owner"); // The groups determine the role again.
  });

  it("are linked to an invitation once, by an e-mail address that the provider has verified", async () => {
    const owner = await firstOwner();
    await invite(owner, "eve@example.com");
    const claims = { email: "Eve@Example.com" };
    const unverified = await signInAs({ subject: "x1", claims: { ...claims, email_verified: false } });
    const withoutClaim = await signInAs({ subject: "x2", claims });
    const asText = await signInAs({ subject: "x3", claims: { ...claims, email_verified: "true" } });
    for (const { page, visitor } of [unverified, withoutClaim, asText]) {
      expect([page.status, await signedInUser(visitor)]).toEqual([403, undefined]);
      expect(alertOf(page)).toContain("You have no invitation");
    }
    const eve = await signInAs({ subject: "e1", claims: { ...claims, email_verified: true } });
    expect(await signedInUser(eve.visitor)).toBe("eve@example.com: member of red");
    const later = await signInAs({ subject: "e2", claims: { ...claims, email_verified: true } });
    expect(later.page.status).toBe(403);
    const again = await signInAs({ subject: "e1", claims: {} });
    expect(await signedInUser(again.visitor)).toBe("eve@example.com: member of red");
  });

  it("are never linked to an account that has a password, by address or by name", async () => {
    const owner = await firstOwner();
    const link = await invite(owner, "bob@example.com");
    const bob = new Visitor(api.url);
    await bob.post("/dashboard/join", { link, password });
    const people = await owner.get("/dashboard/people");
    const [, id = ""] = /bob@example.com<.*?name="id" value="([^"]+)"/s.exec(people.text) ?? [];
    await owner.post("/dashboard/people/link", { id });
    await invite(owner, "ada");
    const byAddress = await signInAs({
      subject: "b2",
      claims: { email: "bob@example.com", email_verified: true, groups: ["admins"] },
    });
    expect(alertOf(byAddress.page)).toContain("A user named bob@example.com already exists.");
    const byName = await signInAs(ada);
    expect(alertOf(byName.page)).toContain("A user named ada already exists.");
    expect(await signedInUser(bob)).toBe("bob@example.com: member of red");
  });

  it("are linked by an invitation link independent of their names, and then can sign in only through the provider", async () => {
    const owner = await firstOwner();
    const link = await invite(owner, "carol");
    const page = await new Visitor(api.url).get(`/dashboard/join?link=${link}`);
    const href = /class="button" href="([^"]+)"/.exec(page.text)?.[1]?.replaceAll("&#61;", "=") ?? "";
    const { visitor } = await signInAs({ subject: "c1", claims: {} }, undefined, href);
    expect(await signedInUser(visitor)).toBe("carol: member of red");
    const used = await signInAs({ subject: "c2", claims: {} }, undefined, href);
    expect(alertOf(used.page)).toBe("This link was used or has expired; ask an owner for another one.");
    const other = await invite(owner, "dave");
    const twice = await signInAs(
      { subject: "c1", claims: {} },
      undefined,
      `/dashboard/oidc/start?link=${other}`,
    );
    expect(alertOf(twice.page)).toBe(
      "Your identity at the provider belongs to the user carol, and this link is for dave. Ask an owner for help.",
    );
    expect((await owner.get("/dashboard/people")).text).toMatch(/carol<\/th>.*with the provider/);
    const byPassword = new Visitor(api.url);
    await byPassword.post("/dashboard/login", { name: "carol", password });
    expect(await signedInUser(byPassword)).toBeUndefined();
  });
});

describe("an invalid response of the provider", () => {
  let shared: TestApi;
  let owner: Visitor;
  beforeAll(async () => {
    shared = await serve(newFile());
    owner = await firstOwner();
  });
  beforeEach(() => {
    provider.account = ada;
  });
  afterAll(() => shared.stop());

  /** Opens the callback URL of a sign-in that must fail. Returns the response and the new audit log entry. */
  async function rejectedSignIn(visitor: Visitor, back: URL) {
    const before = await changes(owner);
    const page = await visitor.get(`${back.pathname}${back.search}`);
    expect(await signedInUser(visitor)).toBeUndefined();
    for (const secret of [back.searchParams.get("code"), provider.clientSecret]) {
      if (secret) expect(page.text).not.toContain(secret);
    }
    const after = await changes(owner);
    const [auditEntry] = after.slice(0, after.length - before.length);
    return { status: page.status, message: alertOf(page), auditEntry };
  }

  it("is rejected if it is repeated, in the same browser or in another browser", async () => {
    const { visitor, back } = await signInAs(ada);
    const { cookie } = visitor;
    const begun = new Visitor(api.url);
    await begin(begun);
    const rejectedEntry = "unknown user | sign-in rejected | unknown user | with Example Login: ";
    const otherBrowser = await rejectedSignIn(new Visitor(api.url), back);
    expect(otherBrowser.message).toContain("This sign-in was started in another browser");
    expect(otherBrowser.auditEntry).toContain(rejectedEntry);
    expect(await rejectedSignIn(begun, back)).toMatchObject({
      status: 400,
      message: "The response of Example Login does not match this sign-in; start the sign-in again.",
    });
    expect((await visitor.get(`${back.pathname}${back.search}`)).status).toBe(400);
    visitor.cookie = cookie;
    expect(await signedInUser(visitor)).toBe("ada: member of blue");
  });

  it("is rejected if its code was used, although the browser kept the cookie", async () => {
    const visitor = new Visitor(api.url);
    const back = await provider.visit(await begin(visitor));
    const { cookie } = visitor;
    await visitor.get(`${back.pathname}${back.search}`);
    expect(await signedInUser(visitor)).toBe("ada: member of blue");
    visitor.cookie = cookie;
    expect(await rejectedSignIn(visitor, back)).toEqual({
      status: 400,
      message: "This sign-in took too long or was already used; start the sign-in again.",
      auditEntry: "unknown user | sign-in rejected | unknown user | with Example Login: invalid_grant",
    });
  });

  it.each([
    ["another nonce", (target: URL) => target.searchParams.set("nonce", "another"), "does not match"],
    [
      "another challenge",
      (target: URL) => target.searchParams.set("code_challenge", "x".repeat(43)),
      "took too long",
    ],
  ])("is rejected with %s", async (_, change, expected) => {
    const visitor = new Visitor(api.url);
    const target = await begin(visitor);
    change(target);
    const { status, message, auditEntry } = await rejectedSignIn(visitor, await provider.visit(target));
    expect([status, message, auditEntry]).toEqual([
      400,
      expect.stringContaining(expected),
      expect.stringContaining("unknown user | sign-in rejected | unknown user | with Example Login: "),
    ]);
  });

  it.each([
    ["another state", "state", "another", "does not match"],
    ["no state", "state", undefined, "does not match"],
    ["another issuer", "iss", "https://login.example.net", "does not match"],
    ["a made-up code", "code", "made-up", "took too long"],
    ["two codes", "code", "second", "does not match"],
    ["an error with markup", "error", "<script>alert(1)</script>", "rejected the sign-in: unknown."],
    ["an error", "error", "access_denied", "rejected the sign-in: access_denied."],
  ])("is rejected with %s", async (what, name, value, expected) => {
    const visitor = new Visitor(api.url);
    const back = await provider.visit(await begin(visitor));
    if (value === undefined) back.searchParams.delete(name);
    else if (what === "two codes") back.searchParams.append(name, value);
    else back.searchParams.set(name, value);
    const { status, message } = await rejectedSignIn(visitor, back);
    expect([status, message]).toEqual([400, expect.stringContaining(expected)]);
  });

  it("is rejected if its code has expired, or ten minutes after the start of the sign-in", async () => {
    const visitor = new Visitor(api.url);
    provider.codesAreOld = true;
    const old = await provider.visit(await begin(visitor));
    expect((await rejectedSignIn(visitor, old)).message).toContain("took too long");
    provider.codesAreOld = false;
    const late = await provider.visit(await begin(visitor));
    const [, name, begun, secret] = /^(.*)=(\d+)\.(.*)$/.exec(visitor.cookie) ?? [];
    visitor.cookie = `${name}=${Number(begun) - 600_001}.${secret}`;
    expect((await rejectedSignIn(visitor, late)).message).toContain("took more than ten minutes");
  });
});

describe("an identity provider", () => {
  it.each([
    [
      "that is unreachable",
      async () => ({ issuer: `http://127.0.0.1:${await leasePort()}` }),
      503,
      "is not reachable",
    ],
    [
      "with another issuer name than the configured one",
      async () => ({ issuer: provider.issuer.replace("127.0.0.1", "localhost") }),
      502,
      "sent an invalid response",
    ],
    [
      "with a missing file of the certificate authority",
      async () => ({ caFile: join(folder, "none") }),
      503,
      "The certificate of the authority of Example Login is missing on this server.",
    ],
    [
      "with a missing file of the client secret",
      async () => ({ clientSecretFile: join(folder, "none") }),
      503,
      "The client secret for Example Login is missing on this server.",
    ],
  ])("%s does not prevent a sign-in with a password", async (_, more, status, message) => {
    await start(newFile(), await more());
    const owner = await firstOwner();
    const page = await new Visitor(api.url).get("/dashboard/oidc/start");
    expect([page.status, alertOf(page)]).toEqual([status, expect.stringContaining(message)]);
    expect(page.setCookie).toBeUndefined();
    expect(await signedInUser(owner)).toBe("boss: owner");
    expect((await changes(owner))[0]).toContain(
      "unknown user | sign-in rejected | unknown user | with Example Login: ",
    );
  });

  it("that rejects the client secret is reported, and a replaced secret is used without a restart", async () => {
    const clientSecretFile = join(folder, "replaced");
    writeFileSync(clientSecretFile, "wrong");
    await start(newFile(), { clientSecretFile });
    const refused = await signInAs(root);
    expect([refused.page.status, alertOf(refused.page)]).toEqual([
      502,
      expect.stringContaining("does not recognize this server"),
    ]);
    writeFileSync(clientSecretFile, provider.clientSecret);
    expect(await signedInUser((await signInAs(root)).visitor)).toBe("root: owner");
  });

  it("receives PKCE, a state, a nonce and the redirect URI of the dashboard", async () => {
    await start(newFile());
    const visitor = new Visitor(api.url);
    const { setCookie } = await visitor.get("/dashboard/oidc/start");
    expect(setCookie).toMatch(
      /^__Host-svc-tts-sign-in=\d{13}\.[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    const parameters = Object.fromEntries((await begin(visitor)).searchParams);
    expect(parameters).toEqual({
      client_id: "svc-tts",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      redirect_uri: `${url}/dashboard/oidc/callback`,
      response_type: "code",
      scope: "openid profile email",
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
  });

  it("without an owner among its users leaves the set-up link valid, also after users have signed in", async () => {
    await start(newFile());
    expect((await new Visitor(api.url).get("/dashboard/setup")).text).toContain("Sign in with Example Login");
    expect(await signedInUser((await signInAs(ada)).visitor)).toBe("ada: member of blue");
    expect(await signedInUser(await firstOwner())).toBe("boss: owner");
  });
});

it("the callback URL may contain another question mark", async () => {
  await start(newFile());
  const visitor = new Visitor(api.url);
  provider.account = root;
  const back = await provider.visit(await begin(visitor));
  await visitor.get(`${back.pathname}?more=a?b&${back.search.slice(1)}`);
  expect(await signedInUser(visitor)).toBe("root: owner");
});

it("a sign-in can be finished by another replica than the one that started it", async () => {
  await start(await postgres.newDatabase());
  const first = api;
  await start(database);
  const visitor = new Visitor(first.url);
  provider.account = root;
  const back = await provider.visit(await begin(visitor));
  const other = new Visitor(api.url);
  other.cookie = visitor.cookie;
  await other.get(`${back.pathname}${back.search}`);
  await first.stop();
  expect(await signedInUser(other)).toBe("root: owner");
});

it("a link on another site cannot use an invitation, with any headers of the browser", async () => {
  await start(newFile());
  const link = await invite(await firstOwner(), "dave");
  const follow = (headers: Record<string, string>) =>
    new Visitor(api.url).get(`/dashboard/oidc/start?link=${link}`, headers);
  const crossSite: Record<string, string>[] = [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "cross-site", referer: `${api.url}/dashboard/join` },
    { referer: "https://example.net/" },
    { referer: "about:blank" },
    {},
  ];
  for (const headers of crossSite) {
    const { status, setCookie } = await follow(headers);
    expect([headers, status, setCookie]).toEqual([headers, 403, undefined]);
  }
  expect((await follow({ referer: `${api.url}/dashboard/join?link=${link}` })).status).toBe(303);
});
