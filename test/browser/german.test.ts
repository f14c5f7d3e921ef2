import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { englishTexts } from "../../server/dashboard/languages/english.ts";
import { germanTexts } from "../../server/dashboard/languages/german.ts";
import { startBrowser, type TestBrowser, violationsOf } from "../support/chromium.ts";
import { eventually } from "../support/eventually.ts";
import { startWholeServer, type WholeServer } from "../support/server/whole-server.ts";

const password = "vier einfache Wörter hier";
const pictures = process.env.PICTURES;

let folder: string;
let browser: TestBrowser;
let server: WholeServer;
let url: string;
let page: Page;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-german-"));
  writeFileSync(join(folder, "setup"), "setup");
  if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
  const dashboard = { url: "http://127.0.0.1", setupFile: join(folder, "setup") };
  server = await startWholeServer({ database: join(folder, "svc-tts.db"), dashboard });
  url = `${server.api.url}/dashboard`;
  browser = await startBrowser("de-DE");
  page = await browser.context.newPage();
}, 120_000);
afterAll(async () => {
  await browser.stop();
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** A script that returns all texts of a page in the page's language, including texts for screen readers. */
const readPage = `[
  ...(function* () {
    const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    const other = "html [lang], script, style, code, pre, textarea";
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (!node.parentElement.closest(other)) yield node.data.replace(/\\s+/g, " ").trim();
    for (const name of ["aria-label", "placeholder", "title", "alt"])
      for (const element of document.querySelectorAll("[" + name + "]"))
        if (!element.matches(".sounds")) yield element.getAttribute(name);
  })(),
].filter((text) => text !== "")`;

interface EnglishTexts {
  /** Texts to compare with the complete text of a node. */
  readonly exact: ReadonlySet<string>;
  /** Texts of several words, to search for within the text of a node. */
  readonly parts: readonly string[];
}

/** Returns the English texts of the dashboard that do not occur in the German translation. */
function untranslated(): EnglishTexts {
  const translations = new Set(leaves(germanTexts).flatMap(partsOf));
  const texts = leaves(englishTexts)
    .flatMap(partsOf)
    .filter((text) => /[a-z]{2}/i.test(text) && !translations.has(text));
  return {
    exact: new Set(texts),
    parts: texts.filter((text) => /[a-z]{2,} .*[a-z]{3,}/i.test(text)),
  };
}

function leaves(words: object): unknown[] {
  return Object.values(words).flatMap((value) => (typeof value === "object" ? leaves(value) : [value]));
}

function partsOf(value: unknown): string[] {
  if (typeof value === "string")
    return value
      .split(/\{\w+\}/)
      .map(trimmed)
      .filter((text) => text !== "");
  const literals = String(value).match(/`[^`]*`|"[^"]*"/g) ?? [];
  return literals
    .flatMap((literal) => literal.slice(1, -1).split(/\$\{[^}]*\}/))
    .map(trimmed)
    .filter((text) => text.length > 3);
}

function trimmed(text: string): string {
  return text.trim();
}

const english = untranslated();

/** Checks that the whole page is in German, and that axe reports no violation. */
async function lookAt(name: string): Promise<void> {
  const texts = await page.evaluate<string[]>(readPage);
  const englishTexts = texts.filter(
    (text) => english.exact.has(text) || english.parts.some((part) => text.includes(part)),
  );
  expect(englishTexts, name).toEqual([]);
  expect(await page.evaluate("document.documentElement.lang"), name).toBe("de-DE");
  expect(await violationsOf(page), name).toEqual([]);
  if (pictures !== undefined)
    await page.screenshot({ path: join(pictures, `${name}-german.png`), fullPage: true });
}

it("the search for English texts finds them on an English page", async () => {
  expect(english.exact.size).toBeGreaterThan(250);
  await page.goto(`${url}/setup`);
  const germanPage = await page.evaluate<string[]>(readPage);
  expect(germanPage.length).toBeGreaterThan(5);
  await page.getByRole("button", { name: "English" }).click();
  await page.waitForURL(`${url}/setup`);
  const englishPage = await page.evaluate<string[]>(readPage);
  expect(englishPage.filter((text) => english.exact.has(text)).length).toBeGreaterThan(3);
  await page.getByRole("button", { name: "Deutsch" }).click();
  await page.getByRole("heading", { name: "Erste Anmeldung" }).waitFor();
});

it("the dashboard is in German if the browser requests it, and the language switch works before and after the sign-in", async () => {
  await lookAt("first-sign-in");
  await page.goto(`${url}/setup?token=setup`);
  await lookAt("setup");
  await page.getByLabel("Ihr Name").fill("ada");
  await page.getByLabel("Passwort").fill("ananananananan");
  await page.getByRole("button", { name: "Eigentümer anlegen" }).click();
  await page.getByText("Das Passwort hat zu wenige verschiedene Zeichen").waitFor();
  await lookAt("setup-refused");
  await page.getByLabel("Passwort").fill(password);
  await page.getByRole("button", { name: "Eigentümer anlegen" }).click();
  await page.getByText("Es gibt noch keine Schlüssel.").waitFor();
  await page.getByRole("button", { name: "English" }).click();
  await page.getByText("There are no keys yet.").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByRole("button", { name: "Deutsch" }).press("Enter");
  await page.getByRole("heading", { name: "Anmelden" }).waitFor();
  await lookAt("sign-in");
  await page.getByLabel("Name").fill("ada");
  await page.getByLabel("Passwort").fill(password);
  await page.getByRole("button", { name: "Anmelden" }).click();
  await page.getByText("Es gibt noch keine Schlüssel.").waitFor();
});

it("the keys, the form for a key, and its errors are in German", async () => {
  await server.api.post(
    { saveOovs: true, modelId: "mist", speaker: "alan", text: "Say Zorblax to me." },
    { accept: "audio/pcm" },
  );
  await page.getByLabel("Name", { exact: true }).fill("Probe");
  await page.getByLabel("Gültig bis").fill("2001-01-01");
  await page.getByRole("button", { name: "Schlüssel anlegen" }).click();
  await page.getByText("Das Datum muss in der Zukunft liegen.").waitFor();
  await lookAt("keys-refused");
  await page.getByLabel("Gültig bis").fill("");
  await page.getByRole("button", { name: "Schlüssel anlegen" }).click();
  await page.getByText("Der Schlüssel Probe ist angelegt.").waitFor();
  await page.getByText("Probe ändern").click();
  await lookAt("keys");
});

it("the playground is in German, and formats numbers for German readers", async () => {
  await page.getByRole("link", { name: "Sprechprobe" }).click();
  await page.getByLabel("Modell").selectOption("mist");
  await page.getByLabel("Stimme").selectOption("greta");
  await page.getByLabel("Text", { exact: true }).fill("Guten Tag, ich lese Ihnen das gerne vor.");
  await page.getByText("40 von 1.000 Zeichen").waitFor();
  await page.getByRole("button", { name: "Sprechen" }).click();
  await page.getByText(/Erster Ton nach [\d.]+ ms; \d+,\d s Sprache/).waitFor();
  await page.getByText("Optionen").click();
  await lookAt("playground");
  await page.getByLabel("Text", { exact: true }).fill("Wort ".repeat(201));
  await page.getByRole("button", { name: "Sprechen" }).click();
  await page
    .getByText("Der Text hat 1.005 Zeichen; im Dashboard sind mit mist höchstens 1.000 erlaubt")
    .waitFor();
  await page.getByLabel("Text", { exact: true }).fill("Eine <99999> Pause.");
  await page.getByLabel("ist eine Pause von N Millisekunden").check();
  await page.getByRole("button", { name: "Sprechen" }).click();
  await page.getByRole("alert").getByText("Eine Pause dauert höchstens").waitFor();
  await lookAt("playground-refused");
  const body = `event: error\ndata: ${JSON.stringify({ detail: "The model went away." })}\n\n`;
  const headers = { "content-type": "text/event-stream", "x-sampling-rate": "22050" };
  await page.route("**/dashboard/playground/speech", (route) => route.fulfill({ headers, body }));
  await page.getByRole("button", { name: "Sprechen" }).click();
  await page.getByRole("alert").getByText(germanTexts.client.brokeOff).waitFor();
  await page.unroute("**/dashboard/playground/speech");
});

it("the out-of-vocabulary words, the lexicon and its files are in German", async () => {
  await eventually("the word to appear", async () => {
    await page.goto(`${url}/words`);
    return page.getByRole("heading", { name: "Zorblax" }).isVisible();
  });
  await page.getByLabel("Aussprache von Zorblax").fill("z1Orbl2@ks");
  await page.getByRole("button", { name: "Zorblax anhören" }).click();
  await page.getByText(/^\d,\d s$/).waitFor();
  await page.locator("summary", { hasText: "Das Lautalphabet" }).click();
  await lookAt("words");
  await page.getByRole("button", { name: "Zorblax speichern" }).click();
  await page.getByRole("button", { name: "zorblax entfernen" }).waitFor();
  await lookAt("lexicon");
  const file = join(folder, "wrong.pls");
  writeFileSync(file, "<lexicon/>");
  await page.getByLabel("Zu importierende Datei").setInputFiles(file);
  await page.getByRole("button", { name: "Importieren", exact: true }).click();
  await page.getByRole("alert").getByText("Zeile 1: Die Datei muss mit").waitFor();
  await lookAt("import-refused");
});

it("all other pages and an error page are in German", async () => {
  await page.getByRole("link", { name: "Konto" }).click();
  await page.getByText("aktuelle Sitzung").waitFor();
  await lookAt("account");
  await page.getByRole("link", { name: "Nutzung" }).click();
  await page.getByRole("cell", { name: "alan" }).first().waitFor();
  await lookAt("usage");
  await page.getByRole("link", { name: "Benutzer" }).click();
  await page.getByLabel("Name", { exact: true }).fill("bob");
  await page.getByLabel("Team", { exact: true }).fill("blau");
  await page.getByLabel("Rolle").selectOption("viewer");
  await page.getByRole("button", { name: "Benutzer hinzufügen und Link erzeugen" }).click();
  await page.getByText("bob ändern").click();
  await lookAt("people");
  const link = new URL((await page.locator("#link").textContent()) ?? "");
  await page.getByRole("link", { name: "Audit-Protokoll" }).click();
  await lookAt("changes");
  await page.getByRole("button", { name: "Abmelden" }).click();
  await page.goto(`${server.api.url}${link.pathname}${link.search}`);
  await lookAt("join");
  await page.getByLabel("Passwort").fill(password);
  await page.getByRole("button", { name: "Dieses Passwort festlegen" }).click();
  await page.waitForURL(`${url}/keys`);
  await page.goto(`${url}/people`);
  await page.getByText("Ihre Rolle ist Betrachter.").waitFor();
  await lookAt("error");
});
