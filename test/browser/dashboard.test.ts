import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startBrowser, type TestBrowser, violationsOf } from "../support/chromium.ts";
import { eventually } from "../support/eventually.ts";
import { startPostgres, type TestPostgres } from "../support/server/postgres.ts";
import { startWholeServer, type WholeServer } from "../support/server/whole-server.ts";

const run = promisify(execFile);
const setupToken = "a-long-text-that-the-server-made-for-its-first-owner";
const password = "four plain words here";
/** The text has each word only once. */
const spoken =
  "Hello there, my good old friend; it has been such a long time since we met last in that town by the sea.";
const written = spoken.split(" ").map((word) => word.replace(/[,;.]$/, ""));
/** The folder for screenshots, which a developer reviews. If it is not set, the test takes no screenshots. */
const pictures = process.env.PICTURES;

let folder: string;
let postgres: TestPostgres;
let browser: TestBrowser;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "svc-tts-browser-"));
  writeFileSync(join(folder, "setup"), setupToken);
  if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
  postgres = await startPostgres();
}, 300_000);
afterAll(async () => {
  await postgres.stop();
  rmSync(folder, { recursive: true });
});

describe.each([
  ["SQLite", async () => join(folder, "svc-tts.db")],
  ["PostgreSQL", () => postgres.newDatabase()],
] as const)("a user in Chromium, with %s", (kind, newDatabase) => {
  let server: WholeServer;
  let url: string;
  let page: Page;
  let key: string;
  /** The URLs of requests to other servers. */
  const elsewhere: string[] = [];
  const problems: string[] = [];

  beforeAll(async () => {
    const dashboard = { url: "http://127.0.0.1", setupFile: join(folder, "setup") };
    const database = await newDatabase();
    server = await startWholeServer({ database, dashboard }, { maxConcurrentStreams: 8 });
    url = server.api.url;
    browser = await startBrowser();
    page = await browser.context.newPage();
    page.on("request", (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(url))
        elsewhere.push(request.url());
    });
    page.on("console", (message) => {
      if (
        message.type() === "error" &&
        !message.text().includes("the server responded with a status of 400") &&
        !message.text().includes("net::ERR_FAILED") // The test itself cancels this request.
      ) {
        problems.push(message.text());
      }
    });
    page.on("pageerror", (error) => problems.push(error.message));
  }, 120_000);
  afterAll(async () => {
    await browser.stop();
    await server.stop();
  });

  /**
   * Checks the page in light mode, in dark mode and on a phone: axe reports no violation, and no content is
   * wider than the screen.
   */
  async function lookAt(name: string): Promise<void> {
    const looks = [
      { look: "light", width: 1280, colorScheme: "light" },
      { look: "dark", width: 1280, colorScheme: "dark" },
      { look: "phone", width: 360, colorScheme: "light" },
    ] as const;
    for (const { look, width, colorScheme } of looks) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      expect(await violationsOf(page), `${name}, ${look}`).toEqual([]);
      const wide = await page.evaluate("document.documentElement.scrollWidth");
      expect(wide, `${name}, ${look}`).toBeLessThanOrEqual(width);
      if (pictures !== undefined && kind === "SQLite") {
        await page.screenshot({ path: join(pictures, `${name}-${look}.png`), fullPage: true });
      }
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.emulateMedia({ colorScheme: "light" });
  }

  async function curl(): Promise<{ status: string; riff: string }> {
    const file = join(folder, "speech.wav");
    const body = JSON.stringify({ speaker: "alan", modelId: "mist", text: "It works." });
    const words = ["-sS", `${url}/v1/svc-tts`, "-H", `Authorization: Bearer ${key}`, "-d", body, "-o", file];
    const types = ["-H", "Content-Type: application/json", "-H", "Accept: audio/wav", "-w", "%{http_code}"];
    const { stdout } = await run("curl", [...words, ...types]);
    return { status: stdout, riff: readFileSync(file).toString("latin1", 0, 4) };
  }

  /** Starts to record the words that the page highlights, in order. */
  async function watchLitWords(): Promise<void> {
    await page.evaluate(`
      globalThis.highlighted = [];
      new MutationObserver((changes) => {
        for (const { target } of changes) {
          const isNew = target.classList.contains("lit") && highlighted.at(-1) !== target.textContent;
          if (isNew) highlighted.push(target.textContent);
        }
      }).observe(document.getElementById("words"), { subtree: true, attributeFilter: ["class"] })`);
  }

  /** Waits for the end of the speech, and returns the highlighted words. */
  async function litWords(): Promise<string[]> {
    await page.getByRole("button", { name: "Stop", disabled: true }).waitFor();
    return page.evaluate<string[]>("highlighted");
  }

  it("creates the first owner through the set-up link", async () => {
    await page.goto(`${url}/dashboard`);
    await lookAt("first-sign-in");
    await page.goto(`${url}/dashboard/setup?token=${setupToken}`);
    await lookAt("setup");
    await page.getByLabel("Your name").fill("ada");
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${url}/dashboard/keys`);
    await lookAt("no-keys");
  });

  it("signs out and in again with the keyboard alone", async () => {
    await page.getByRole("button", { name: "Sign out" }).press("Enter");
    await page.waitForURL(`${url}/dashboard/login`);
    await lookAt("sign-in");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content");
    await page.keyboard.press("Tab"); // This skips the button of the other language.
    await page.keyboard.press("Tab");
    await page.keyboard.type("Ada");
    await page.keyboard.press("Tab");
    await page.keyboard.type(password);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${url}/dashboard/keys`);
  });

  it("creates a key that curl can use, and revokes it", async () => {
    await page.getByLabel("Name", { exact: true }).fill("app");
    await page.getByLabel("Concurrent streams").fill("4");
    await page.getByRole("button", { name: "Create key" }).click();
    key = (await page.locator("#new-key").textContent()) ?? "";
    await lookAt("new-key");
    await eventually("curl to receive speech", async () => (await curl()).status === "200");
    expect((await curl()).riff).toBe("RIFF");
    await page.goto(`${url}/dashboard/keys`);
    expect(await page.content()).not.toContain(key);
    await page.getByText("Change app").click();
    await lookAt("keys");
    await page.getByRole("button", { name: "Revoke now" }).click();
    await page.getByText("There are no keys yet.").waitFor();
    await eventually("the revoked key to be rejected", async () => (await curl()).status === "401");
  });

  it("plays speech in the playground, highlights its words, and reports a text that is too long", async () => {
    await page.getByRole("link", { name: "Playground" }).click();
    await page.getByLabel("Model").selectOption("mist");
    await page.getByLabel("Voice").selectOption("alan");
    await page.getByLabel("Text", { exact: true }).fill(spoken);
    await watchLitWords();
    await page.getByRole("button", { name: "Speak" }).click();
    await page.getByText(/First audio after \d+ ms; [\d.]+ s of speech/).waitFor();
    const highlighted = await litWords();
    expect(highlighted.length).toBeGreaterThan(2);
    expect(written.filter((word) => highlighted.includes(word))).toEqual(highlighted);
    const drawn = await page.evaluate(
      `(() => { const c = document.querySelector("canvas"); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v > 0); })()`,
    );
    expect(drawn).toBe(true);
    await lookAt("playground");
    const download = page.waitForEvent("download");
    await page.getByLabel("Format").selectOption("mp3");
    await page.getByRole("button", { name: "Download" }).click();
    const file = await (await download).path();
    expect((await download).suggestedFilename()).toBe("speech.mp3");
    expect(readFileSync(file).length).toBeGreaterThan(2_000);
    await page.getByLabel("Text", { exact: true }).fill("word ".repeat(201));
    await page.getByRole("button", { name: "Speak" }).click();
    await page
      .getByRole("alert")
      .getByText("has 1,005 characters; the limit with mist in the dashboard is 1,000")
      .waitFor();
    await page.getByRole("button", { name: /^alan: Hello there/ }).click();
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toBe(spoken);
  });

  it("shows in the playground why speech was interrupted, and that the server is unreachable", async () => {
    const speech = "**/dashboard/playground/speech";
    const alert = page.getByRole("alert");
    const body = `event: error\ndata: ${JSON.stringify({ detail: "The model went away." })}\n\n`;
    const headers = { "content-type": "text/event-stream", "x-sampling-rate": "22050" };
    await page.route(speech, (route) => route.fulfill({ headers, body }));
    await page.getByRole("button", { name: "Speak" }).click();
    await alert.getByText("The model went away.").waitFor();
    await page.unroute(speech);
    await page.route(speech, (route) => route.abort());
    await page.getByRole("button", { name: "Speak" }).click();
    await alert.getByText("The server is not reachable").waitFor();
    await page.unroute(speech);
  });

  it("plays a sample of the chosen voice without changing the entered text", async () => {
    await page.getByLabel("Voice").selectOption("greta");
    await page.getByRole("button", { name: "Play a sample" }).click();
    await page.getByText(/First audio after \d+ ms; [\d.]+ s of speech/).waitFor();
    expect(await page.locator("#words").textContent()).toContain("Guten Tag");
    expect(await page.getByLabel("Text", { exact: true }).inputValue()).toBe(spoken);
    expect(await page.locator("#history").textContent()).not.toContain("Guten Tag");
    await page.getByLabel("Voice").selectOption("alan");
  });

  it("shows the request as curl, Python and JavaScript programs that run", async () => {
    const apiKey = server.api.key;
    const programs = {
      curl: ["bash", "-c"],
      python: ["python3", "-c"],
      javascript: [process.execPath, "--input-type=module", "-e"],
    };
    for (const [kindOfCode, [program = "", ...words]] of Object.entries(programs)) {
      await page.getByLabel("As code", { exact: true }).selectOption(kindOfCode);
      const code = (await page.locator("#code").textContent()) ?? "";
      const at = mkdtempSync(join(folder, "code-"));
      await run(program, [...words, code], { cwd: at, env: { ...process.env, SVC_TTS_API_KEY: apiKey } });
      expect(readFileSync(join(at, "speech.wav")).toString("latin1", 0, 4)).toBe("RIFF");
    }
  });

  it("enters the pronunciation of an out-of-vocabulary word, listens to it, and saves it", async () => {
    await page.goto(`${url}/dashboard/words`);
    await page.getByRole("button", { name: "Save sentences" }).click();
    const team = { saveOovs: true, modelId: "mist", speaker: "alan", text: "Hello. Say Zorblax to me." };
    await server.api.post(team, { accept: "audio/pcm" }); // The key of this request has no team.
    const word = page.getByRole("heading", { name: "Zorblax" });
    await eventually("the word to appear", async () => {
      await page.goto(`${url}/dashboard/words`);
      return word.isVisible();
    });
    await page.getByText("Say Zorblax to me.").waitFor();
    await page.getByLabel("Pronunciation of Zorblax").fill("z1Orbl2@ks");
    await page.getByRole("button", { name: "Listen to Zorblax" }).click();
    await page.getByText(/^\d\.\d s$/).waitFor();
    await page.locator("summary", { hasText: "The phonetic alphabet" }).click();
    await lookAt("words");
    await page.getByRole("button", { name: "Save Zorblax" }).click();
    await page.getByRole("button", { name: "Remove zorblax" }).waitFor();
    await lookAt("lexicon");
  });

  it("exports the lexicon as a file, and imports it again", async () => {
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export" }).click();
    const file = join(folder, (await download).suggestedFilename());
    await (await download).saveAs(file);
    expect(readFileSync(file, "utf8")).toContain("<grapheme>zorblax</grapheme>");
    await page.getByRole("button", { name: "Remove zorblax" }).click();
    await page.getByText("The lexicon is empty.").waitFor();
    await page.getByLabel("File to import").setInputFiles(file);
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByText("One word was imported.").waitFor();
    expect(await page.getByLabel("Pronunciation of zorblax").inputValue()).toBe("z1Orbl2@ks");
    writeFileSync(file, "<lexicon/>");
    await page.getByLabel("File to import").setInputFiles(file);
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByRole("alert").getByText("Line 1: The file must begin with").waitFor();
    await lookAt("import-refused");
  });

  it("shows the usage by day, key and voice", async () => {
    await page.getByRole("link", { name: "Usage" }).click();
    await page.getByRole("img", { name: "Requests per day" }).waitFor();
    await page.getByRole("cell", { name: "alan" }).first().waitFor();
    await lookAt("usage");
  });

  it("adds a user, who sees only the team's keys", async () => {
    await page.getByRole("link", { name: "Users" }).click();
    await page.getByLabel("Name", { exact: true }).fill("bob");
    await page.getByLabel("Team", { exact: true }).fill("blue");
    await page.getByRole("button", { name: "Add user and create link" }).click();
    await lookAt("people");
    const link = new URL((await page.locator("#link").textContent()) ?? "");
    await page.getByRole("link", { name: "Audit log" }).click();
    await lookAt("changes");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.goto(`${url}${link.pathname}${link.search}`);
    await lookAt("join");
    await page.getByLabel("Password").fill("another four plain words");
    await page.getByRole("button", { name: "Set password" }).click();
    await page.waitForURL(`${url}/dashboard/keys`);
    expect(await page.getByRole("navigation").getByRole("link").allTextContents()).toEqual([
      "Keys",
      "Playground",
      "Words",
      "Usage",
    ]);
  });

  it("sends requests to no other server, and no script reports an error", () => {
    expect(elsewhere).toEqual([]);
    expect(problems).toEqual([]);
  });
});
