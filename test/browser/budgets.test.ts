import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { costOf, type PageCost, startBrowser, type TestBrowser } from "../support/chromium.ts";
import { Visitor } from "../support/server/visitor.ts";
import { startWholeServer, type WholeServer } from "../support/server/whole-server.ts";

/** The limits of each page. Times are only printed, because they also depend on the machine. */
const budget = { bytes: 100_000, script: 40_000, requests: 10, elements: 1_500, layoutShift: 0.1 } as const;
const bundleBytes = 150_000;
/** The numbers of API keys and lexicon words of a team of medium size. */
const [keyCount, wordCount] = [20, 50];

let folder: string;
let server: WholeServer;
let browser: TestBrowser;
let url: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-budgets-"));
  writeFileSync(join(folder, "setup"), "setup");
  const dashboard = { url: "http://127.0.0.1", setupFile: join(folder, "setup") };
  server = await startWholeServer({ database: join(folder, "svc-tts.db"), dashboard });
  url = `${server.api.url}/dashboard`;
  browser = await startBrowser();
  const owner = new Visitor(server.api.url);
  await owner.post("/dashboard/setup", { token: "setup", name: "ada", password: "four plain words here" });
  await owner.get("/dashboard/keys");
  for (let i = 0; i < keyCount; i++) {
    await owner.post("/dashboard/keys", { name: `app ${i}`, scopes: "tts:write" });
  }
  const entries = Array.from(
    { length: wordCount },
    (_, i) => `word${"abcdefghij"[i % 10]}${"x".repeat(i / 10)}`,
  );
  const lexemes = entries.map((word) => `<lexeme><grapheme>${word}</grapheme><phoneme>tu</phoneme></lexeme>`);
  const namespace = "http://www.w3.org/2005/01/pronunciation-lexicon";
  const file = `<lexicon version="1.0" xmlns="${namespace}" alphabet="ipa" xml:lang="en">${lexemes.join("")}</lexicon>`;
  await owner.get("/dashboard/words");
  expect((await owner.upload("/dashboard/words/import", { team: "" }, file)).status).toBe(303);
  const [name = "", value = ""] = owner.cookie.split("=");
  await browser.context.addCookies([{ name, value, url: server.api.url }]);
}, 120_000);
afterAll(async () => {
  await browser.stop();
  await server.stop();
  rmSync(folder, { recursive: true });
});

it("every page stays within the budget for bytes, requests, elements and layout shift", async () => {
  const pages = ["login", "keys", "playground", "words", "usage", "people", "changes", "account"];
  const costs: [string, PageCost][] = [];
  for (const name of pages) costs.push([name, await costOf(browser.context, `${url}/${name}`)]);
  console.table(Object.fromEntries(costs.map(([name, cost]) => [name, rowOf(cost)])));
  for (const [name, { bytes, transferred, requests, elements, layoutShift }] of costs) {
    expect(bytes, `${name}: bytes`).toBeLessThanOrEqual(budget.bytes);
    expect(transferred.script ?? 0, `${name}: bytes of scripts`).toBeLessThanOrEqual(budget.script);
    expect(requests, `${name}: requests`).toBeLessThanOrEqual(budget.requests);
    expect(elements, `${name}: elements`).toBeLessThanOrEqual(budget.elements);
    expect(layoutShift, `${name}: layout shift`).toBeLessThanOrEqual(budget.layoutShift);
  }
});

it("costOf measures the layout shift, the elements and the blocked time of a heavy page", async () => {
  await browser.context.route(`${url}/heavy`, (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<!doctype html><div id="above"></div><p>${"<b>x</b>".repeat(2_000)}</p><script>
        setTimeout(() => { document.getElementById("above").style.height = "500px";
          const end = performance.now() + 300; while (performance.now() < end); }, 300)</script>`,
    }),
  );
  const cost = await costOf(browser.context, `${url}/heavy`, (page) =>
    page.waitForFunction("cost.layoutShift > 0"),
  );
  expect(cost.layoutShift).toBeGreaterThan(budget.layoutShift);
  expect(cost.elements).toBeGreaterThan(budget.elements);
  expect(cost.blockedMs).toBeGreaterThan(100);
});

it("the assets of the dashboard stay within the budget when compressed", () => {
  const assets = join(import.meta.dirname, "../../server/dashboard/assets");
  const sizes = readdirSync(assets).map((name) => {
    const file = readFileSync(join(assets, name));
    return { name, bytes: file.length, compressed: gzipSync(file).length };
  });
  const sum = sizes.reduce((total, { compressed }) => total + compressed, 0);
  console.table(Object.fromEntries(sizes.map(({ name, ...size }) => [name, size])));
  console.log(`The dashboard's assets have ${sum} compressed bytes. The limit is ${bundleBytes} bytes.`);
  expect(sum).toBeLessThan(bundleBytes);
});

function rowOf({ transferred, bytes, requests, elements, ...times }: PageCost) {
  return {
    html: transferred.document,
    css: transferred.stylesheet,
    scripts: transferred.script ?? 0,
    other: bytes - (transferred.document ?? 0) - (transferred.stylesheet ?? 0) - (transferred.script ?? 0),
    bytes,
    requests,
    elements,
    "layout shift": Number(times.layoutShift.toFixed(4)),
    "first paint, ms": Math.round(times.firstPaintMs),
    "blocked, ms": Math.round(times.blockedMs),
  };
}
