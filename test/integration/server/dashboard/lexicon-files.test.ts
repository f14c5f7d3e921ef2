import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { addSignedInUser, Visitor } from "../../../support/server/visitor.ts";

const password = "four plain words here";
const folder = folderOfTests("lexicon");

let api: TestApi;
let owner: Visitor;
let member: Visitor;
let viewer: Visitor;

beforeAll(async () => {
  writeFileSync(join(folder, "setup"), "the-setup-token");
  const dashboard = { url: "http://127.0.0.1", setupFile: join(folder, "setup") };
  api = await startTestApi({}, { database: join(folder, "svc-tts.db"), dashboard });
  owner = new Visitor(api.url);
  await owner.post("/dashboard/setup", { token: "the-setup-token", name: "ada", password });
  member = await addSignedInUser(owner, api.url, { name: "bob", role: "member", team: "blue", password });
  viewer = await addSignedInUser(owner, api.url, { name: "eve", role: "viewer", team: "blue", password });
});
afterAll(() => api.stop());

function pls(...lexemes: readonly (readonly [word: string, phonemes: string])[]): string {
  return `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon" alphabet="x-svc-tts" xml:lang="en">
${lexemes
  .map(
    ([word, phonemes]) => `  <lexeme>
    <grapheme>${word}</grapheme>
    <phoneme>${phonemes}</phoneme>
  </lexeme>
`,
  )
  .join("")}</lexicon>
`;
}

async function importBy(visitor: Visitor, file: string, team = "blue") {
  await visitor.get("/dashboard/words");
  return visitor.upload("/dashboard/words/import", { team }, file);
}

function exportBy(visitor: Visitor, team = "blue", alphabet = "x-svc-tts") {
  return visitor.get(`/dashboard/words/export?team=${team}&language=eng&alphabet=${alphabet}`);
}

describe("a lexicon file", () => {
  const file = pls(["quux", "kw1Aks"], ["zorblax", "z1Orbl2@ks"]);

  it("can be imported, and exported unchanged", async () => {
    const imported = await importBy(owner, file);
    expect(imported.headers.get("location")).toBe("/dashboard/words?team=blue&imported=2");
    const page = await owner.get(imported.headers.get("location") ?? "");
    expect(page.text).toContain("2 words were imported.");
    expect(page.text).toContain('value="z1Orbl2@ks"');
    const exported = await exportBy(owner);
    expect(exported.headers.get("content-type")).toBe("application/pls+xml; charset=utf-8");
    expect(exported.headers.get("content-disposition")).toBe('attachment; filename="lexicon-eng.pls"');
    expect(exported.text).toBe(file);
    const ipa = (await exportBy(owner, "blue", "ipa")).text;
    expect((await importBy(owner, ipa, "red")).status).toBe(303);
    expect((await exportBy(owner, "red")).text).toBe(file);
    expect((await owner.get("/dashboard/changes")).text).toMatch(
      /<td>ada<\/td><td>words imported<\/td><td>blue<\/td><td>2 words<\/td>/,
    );
  });

  it("imported for keys without a team is shown to an owner who has a team", async () => {
    const teamOwner = await addSignedInUser(owner, api.url, {
      name: "cleo",
      role: "owner",
      team: "blue",
      password,
    });
    const imported = await importBy(teamOwner, pls(["teamless", "t1Im"]), "");
    expect((await teamOwner.get(imported.headers.get("location") ?? "")).text).toContain('value="t1Im"');
    expect((await owner.get("/dashboard/changes")).text).toContain("<td>1 word</td>");
  });

  it("of a member is always imported into the member's team, and viewers cannot import or export", async () => {
    expect((await importBy(member, pls(["mine", "m1Yn"]), "red")).status).toBe(303);
    expect((await exportBy(owner, "red")).text).not.toContain("mine");
    expect((await exportBy(member, "red")).text).toContain("mine");
    expect((await importBy(viewer, file)).status).toBe(403);
    expect((await exportBy(viewer)).status).toBe(403);
    const signedOut = new Visitor(api.url);
    expect((await importBy(signedOut, file)).headers.get("location")).toBe("/dashboard/login");
  });

  it("with an error changes nothing, and the message has the line of the error and no markup", async () => {
    const before = (await exportBy(owner)).text;
    const refused = await importBy(owner, pls(["fine", "f1Yn"], ["&lt;b&gt;x", "z?"], ["<b>", "z"]));
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("Nothing was imported.");
    expect(refused.text).toMatch(/<li dir="auto">Line \d+: /);
    expect(refused.text).not.toContain("<b>x");
    expect((await exportBy(owner)).text).toBe(before);
    const bomb = file.replace("<lexicon", '<!DOCTYPE lexicon [<!ENTITY a "a">]><lexicon');
    expect((await importBy(owner, bomb)).text).toContain("Line 2: Document types");
  });

  it("must be a single file of at most 2 MiB, in a form of this page", async () => {
    expect((await importBy(owner, "")).text).toContain("The file is missing or empty");
    const large = await importBy(owner, `${file}${" ".repeat(2 * 1024 * 1024)}`);
    expect(large.status).toBe(413);
    expect(large.text).toContain("The file is larger than 2 MiB");
    const form = new FormData();
    for (const name of ["a.pls", "b.pls"]) form.append("file", new Blob([file]), name);
    const two = await fetch(`${api.url}/dashboard/words/import`, {
      method: "POST",
      body: form,
      headers: { cookie: owner.cookie, "sec-fetch-site": "same-origin" },
    });
    expect([two.status, await two.text()]).toEqual([400, expect.stringContaining("send one file at a time")]);
    const fields = { team: "blue", a: "", b: "", c: "", d: "" };
    const long = await owner.upload("/dashboard/words/import", fields, file);
    expect([long.status, long.text]).toEqual([400, expect.stringContaining("more fields than")]);
    const plain = await owner.post("/dashboard/words/import", { team: "blue", file });
    expect(plain.text).toContain("The form is not readable");
    const forged = await owner.upload("/dashboard/words/import", { csrf: "guessed" }, file);
    expect(forged.status).toBe(403);
    for (const question of ["language=xxx&alphabet=ipa", "language=eng&alphabet=x-sampa", "language=eng"]) {
      expect((await owner.get(`/dashboard/words/export?${question}`)).status).toBe(400);
    }
  });
});
