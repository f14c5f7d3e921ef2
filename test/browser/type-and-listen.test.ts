import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startBrowser, type TestBrowser, violationsOf } from "../support/chromium.ts";
import { eventually } from "../support/eventually.ts";
import { Visitor } from "../support/server/visitor.ts";
import { startWholeServer, type WholeServer } from "../support/server/whole-server.ts";

const pictures = process.env.PICTURES;
/** A text in which no word occurs twice. */
const first = "Hello there, my good old friend.";
const second = "It has been such a long time since we met last in that town by the sea.";
/** A speed that leaves the test time to act while the words are spoken. */
const slow = "2";

let folder: string;
let browser: TestBrowser;
let server: WholeServer;
let page: Page;
const problems: string[] = [];
/** The text frames that the page sent. */
const sent: Record<string, string>[] = [];
let sockets = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-type-and-listen-"));
  writeFileSync(join(folder, "setup"), "setup");
  if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
  const dashboard = { url: "http://127.0.0.1", setupFile: join(folder, "setup") };
  server = await startWholeServer({ database: join(folder, "svc-tts.db"), dashboard });
  browser = await startBrowser();
  const owner = new Visitor(server.api.url);
  await owner.post("/dashboard/setup", { token: "setup", name: "ada", password: "four plain words here" });
  const [name = "", value = ""] = owner.cookie.split("=");
  await browser.context.addCookies([{ name, value, url: server.api.url }]);
  page = await browser.context.newPage();
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("websocket", (socket) => {
    sockets += 1;
    socket.on("framesent", ({ payload }) => sent.push(JSON.parse(String(payload))));
  });
  await page.goto(`${server.api.url}/dashboard/playground`);
  await page.getByLabel("Model").selectOption("mist");
  await page.getByLabel("Voice").selectOption("alan");
  await page.getByText("Options", { exact: true }).click();
  await page.getByLabel("Speed (speedAlpha)").fill(slow);
}, 120_000);
afterAll(async () => {
  await browser.stop();
  await server.stop();
  rmSync(folder, { recursive: true });
});

const field = () => page.getByLabel("Text to hear while you type");
const interruptButton = () => page.getByRole("button", { name: "Interrupt" });
const transcript = () => page.locator("#live-words");
const spokenTexts = () => sent.flatMap(({ text }) => text ?? []);

/** Records each highlighted word once, in order. */
async function watchLitWords(): Promise<void> {
  await page.evaluate(`
    globalThis.heard = [];
    new MutationObserver((changes) => {
      for (const { target } of changes) {
        if (target.classList?.contains("lit") && heard.at(-1) !== target.textContent) heard.push(target.textContent);
      }
    }).observe(document.getElementById("live-words"), { subtree: true, attributeFilter: ["class"] })`);
}

const wordsOf = (text: string) => text.split(" ").map((word) => word.replace(/[,.]$/, ""));
const bare = (words: readonly string[]) => words.map((word) => word.replace(/[,.]$/, ""));

it("speaks a sentence once it is complete, and highlights its words in order", async () => {
  await watchLitWords();
  await field().pressSequentially(first);
  expect(sent).toEqual([]);
  await field().press("Space");
  await page.getByText(/First audio \d+ ms after the sentence/).waitFor();
  expect(spokenTexts()).toEqual([`${first} `]);
  await page.getByRole("button", { name: "Interrupt", disabled: true }).waitFor();
  const heard = bare(await page.evaluate<string[]>("heard"));
  expect(heard.length).toBeGreaterThan(2);
  expect(wordsOf(first).filter((word) => heard.includes(word))).toEqual(heard);
  expect(bare((await transcript().innerText()).trim().split(/\s+/))).toEqual(wordsOf(first));
});

it("speaks text without an end after a pause and at Enter, in a turn of its own, on the same socket", async () => {
  await field().pressSequentially("And now");
  await eventually("the rest is sent after the pause", () => spokenTexts().at(-1) === "And now");
  await eventually("its turn ends", () => sent.at(-1)?.operation === "flush");
  await field().pressSequentially(" at once\n");
  expect(spokenTexts().at(-1)).toBe(" at once\n");
  expect(sent.at(-1)).toMatchObject({ operation: "flush" });
  expect(sockets).toBe(1);
});

it("interrupts at once, and keeps only the words that were heard", async () => {
  await eventually("earlier speech is over", () => interruptButton().isDisabled());
  await field().pressSequentially(`${second} `);
  await page.locator("#live-words .lit", { hasText: "such" }).waitFor();
  if (pictures !== undefined)
    await page.screenshot({ path: join(pictures, "type-and-listen.png"), fullPage: true });
  await interruptButton().click();
  await page.getByText("Interrupted.").waitFor();
  expect(await interruptButton().isDisabled()).toBe(true);
  expect(sent.at(-1)).toEqual({ operation: "clear" });
  expect(await page.locator("#live-words .lit").count()).toBe(0);
  const kept = await transcript().innerText();
  expect(kept).toContain("been");
  expect(kept).not.toContain("sea");
});

it("speaks again after an interruption, a correction with its whole word, and nothing twice", async () => {
  await field().fill("");
  await field().pressSequentially("One moment pleese");
  await eventually("the pause speaks it", () => spokenTexts().at(-1) === "One moment pleese");
  for (let i = 0; i < 3; i++) await field().press("Backspace");
  await field().pressSequentially("ase. ");
  expect(spokenTexts().at(-1)).toBe("please. ");
  const before = spokenTexts().length;
  await field().press("Home");
  await field().pressSequentially("Wait ");
  await field().press("End");
  await field().pressSequentially("Thanks. ");
  expect(spokenTexts().slice(before)).toEqual(["Thanks. "]);
});

it("opens another socket after a change of the options", async () => {
  await page.getByLabel("Voice").selectOption("susan");
  await field().pressSequentially("Another voice. ");
  await eventually("another socket is open", () => sockets === 2);
  await interruptButton().and(page.locator(":enabled")).waitFor();
});

it("shows why nothing is spoken", async () => {
  await page.context().clearCookies();
  await page.getByLabel("Voice").selectOption("alan");
  await field().pressSequentially("Nothing. ");
  await page.getByRole("alert").getByText("The server is not reachable").waitFor();
  expect(await violationsOf(page)).toEqual([]);
  expect(problems).toEqual([]);
});
