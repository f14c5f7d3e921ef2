import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { folderOfTests } from "../../../support/folder.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { addSignedInUser, invited, type Page, Visitor } from "../../../support/server/visitor.ts";

const password = "four plain words here";
const inGerman = { "accept-language": "de-AT,de;q=0.9,en;q=0.5" };

const folder = folderOfTests("languages");
writeFileSync(join(folder, "setup"), "setup");

let model: ScriptedModel;
let api: TestApi;
let owner: Visitor;

beforeAll(async () => {
  model = await startScriptedModel(speakTone(0.1));
  const dashboard = { url: "https://tts.example.com", setupFile: join(folder, "setup") };
  api = await startTestApi(model.url, { database: join(folder, "svc-tts.db"), dashboard });
  owner = new Visitor(api.url);
  await owner.post("/dashboard/setup", { token: "setup", name: "ada", password });
});
afterAll(async () => {
  await api.stop();
  await model.close();
});

function languageOf({ text, headers }: Page): readonly (string | null | undefined)[] {
  return [/<html lang="([^"]+)"/.exec(text)?.[1], headers.get("content-language")];
}

function alertOf({ text }: Page): string | undefined {
  return /role="alert">([^<]*)</.exec(text)?.[1];
}

/** The path to which the language switch returns. */
function backOf({ text }: Page): string | undefined {
  return /name="back" value="([^"]*)"/.exec(text)?.[1];
}

describe("the language of a page", () => {
  it("is the language of the browser until the user selects another, before and after the sign-in", async () => {
    const visitor = new Visitor(api.url);
    const page = await visitor.get("/dashboard/login", inGerman);
    expect(languageOf(page)).toEqual(["de-AT", "de-AT"]);
    expect(page.text).toContain("<h1>Anmelden</h1>");
    expect(languageOf(await visitor.get("/dashboard/login"))).toEqual(["en", "en"]);
    const changed = await visitor.post("/dashboard/language", { language: "en", back: "/dashboard/login" });
    expect([changed.status, changed.headers.get("location")]).toEqual([303, "/dashboard/login"]);
    expect(changed.setCookie).toBe(
      "svc-tts-language=en; Max-Age=31536000; Path=/; HttpOnly; Secure; SameSite=Lax",
    );
    expect(languageOf(await visitor.get("/dashboard/login", inGerman))).toEqual(["en", "en"]);
    await visitor.post("/dashboard/login", { name: "ada", password });
    expect(languageOf(await visitor.get("/dashboard/keys", inGerman))).toEqual(["en", "en"]);
  });

  it.each([
    ["/dashboard/join?link=a%26b", "/dashboard/join?link=a%26b"],
    ["https://elsewhere.example.com/dashboard", "/dashboard"],
    ["//elsewhere.example.com/dashboard/keys", "/dashboard"],
    ["/\\elsewhere.example.com/dashboard", "/dashboard"],
    ["/dashboard/..//elsewhere.example.com", "/dashboard"],
    ["/dashboard\r\nset-cookie: a=b", "/dashboard"],
    ["javascript:alert(1)", "/dashboard"],
    ["http://", "/dashboard"],
  ])("changes without leaving the site: from %j, the switch returns to %s", async (back, location) => {
    const changed = await new Visitor(api.url).post("/dashboard/language", { language: "de", back });
    expect([changed.headers.get("location"), changed.headers.get("a")]).toEqual([location, null]);
  });

  it("can be changed on the page of a link after a rejected form, and the link is kept", async () => {
    const fields = { token: "a&b", name: "ada", password };
    const first = await new Visitor(api.url).post("/dashboard/setup", fields);
    expect([first.status, backOf(first)]).toEqual([400, "/dashboard/setup?token=a%26b"]);
    const link = await invited(owner, { name: "joe", role: "viewer", team: "red" });
    const visitor = new Visitor(api.url);
    const refused = await visitor.post("/dashboard/join", { link, password: "short" });
    expect([refused.status, backOf(refused)]).toEqual([400, `/dashboard/join?link=${link}`]);
  });

  it("cannot be an unknown language, and cannot be changed by another site", async () => {
    const visitor = new Visitor(api.url);
    const unknown = await visitor.post("/dashboard/language", { language: "__proto__" }, inGerman);
    expect([unknown.status, unknown.setCookie, alertOf(unknown)]).toEqual([
      400,
      undefined,
      "Die Sprache muss eine der folgenden sein: en, de.",
    ]);
    const crossSite = await visitor.post(
      "/dashboard/language",
      { language: "de" },
      { "sec-fetch-site": "cross-site" },
    );
    expect([crossSite.status, crossSite.setCookie]).toEqual([403, undefined]);
  });
});

describe("an error message", () => {
  it("is in the user's language, beside the field", async () => {
    await owner.get("/dashboard/keys");
    const wrong = { name: "=cmd()", scopes: "tts:write", streams: "0", expiresAt: "2001-01-01" };
    const page = await owner.post("/dashboard/keys", wrong, inGerman);
    expect(page.text).toMatch(/id="name-help" class="wrong">Erlaubt sind 1 bis 64 Buchstaben/);
    expect(page.text).toMatch(/id="streams-help" class="wrong">Erlaubt ist eine ganze Zahl von 1 bis/);
    expect(page.text).toMatch(/id="expiresAt-help" class="wrong">Das Datum muss in der Zukunft liegen/);
  });

  it.each([
    ["people", { name: "ada", role: "owner" }, "Dieser Name ist bereits vergeben"],
    ["people", { name: "!", role: "owner" }, "Ein Name muss 1 bis 64 Buchstaben"],
    ["people", { name: "bob", role: "member" }, "Die Rolle Mitglied erfordert ein Team"],
    [
      "words/save",
      { word: "a b", language: "eng", phonemes: "b" },
      "Ein Wort muss 1 bis 60 Buchstaben haben",
    ],
    [
      "words/save",
      { word: "a", language: "eng", phonemes: "1" },
      "auf eine Betonungsziffer muss ein Vokal folgen",
    ],
    ["keys/revoke", { key: "none" }, "Die Seite oder das Objekt gibt es nicht"],
    ["login", { name: "unknown", password: "x" }, "Der Name oder das Passwort ist falsch."],
  ])("at %s, for %j, is in German too: %s", async (path, fields, message) => {
    await owner.get("/dashboard/keys");
    const page = await owner.post(`/dashboard/${path}`, fields, inGerman);
    expect(alertOf(page)).toContain(message);
  });

  it("is in the language of the page for forms and scripts, and in English in the API", async () => {
    const eve = { name: "eve", role: "viewer", team: "red", password };
    const viewer = await addSignedInUser(owner, api.url, eve);
    const refused = await viewer.get("/dashboard/people", inGerman);
    expect(alertOf(refused)).toBe("Diese Seite erfordert die Rolle Eigentümer; Ihre Rolle ist Betrachter.");
    const { text } = await owner.get("/dashboard/playground");
    const csrf = /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? "";
    const headers = {
      ...inGerman,
      ...{ accept: "audio/pcm", cookie: owner.cookie, "x-csrf-token": csrf, "sec-fetch-site": "same-origin" },
      "content-type": "application/json",
    };
    const send = async (path: string, more: object, body: object) => {
      const init = { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) };
      return (await (await fetch(`${api.url}${path}`, init)).json()) as { code: string; detail: string };
    };
    const body = { modelId: "mist", speaker: "no-such-voice", text: "Hello." };
    expect(await send("/dashboard/playground/speech", {}, body)).toMatchObject({
      code: "invalid_request",
      detail: expect.stringContaining("Das gewählte Modell hat diese Stimme nicht"),
    });
    const authorization = `Bearer ${api.key}`;
    expect((await send("/v1/svc-tts", { authorization }, body)).detail).toContain("must be a voice of mist");
  });

  it("about an imported file names the line of the file", async () => {
    await owner.post("/dashboard/language", { language: "de" });
    await owner.get("/dashboard/words");
    const page = await owner.upload("/dashboard/words/import", { team: "" }, "<lexicon/>");
    expect(page.text).toContain("Zeile 1: Die Datei muss mit &#60;lexicon");
  });
});

it("numbers, dates and names of languages have the format of the user's region, except in CSV exports", async () => {
  const page = await owner.get("/dashboard/usage", inGerman);
  expect(page.text).toMatch(
    /aria-label="Anfragen pro Tag vom \d\d\.\d\d\.\d{4} bis zum \d\d\.\d\d\.\d{4}, höchstens 0"/,
  );
  expect((await owner.get("/dashboard/playground", inGerman)).text).toMatch(/abbie \(weiblich, Englisch\)/);
  expect((await owner.get("/dashboard/usage.csv", inGerman)).text).toMatch(/^day,key,team,/);
});
