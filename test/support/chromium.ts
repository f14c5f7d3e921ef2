import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe from "axe-core";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const programs = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export interface TestBrowser {
  readonly context: BrowserContext;
  stop(): Promise<void>;
}

/** Starts the Chromium of Debian with a new profile. `locale` is the language in which it requests pages. */
export async function startBrowser(locale = "en-US"): Promise<TestBrowser> {
  const executablePath = programs.find((path) => existsSync(path));
  if (executablePath === undefined)
    throw new Error("Chromium is not installed: run sudo apt-get install chromium");
  const profile = mkdtempSync(join(tmpdir(), "svc-tts-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    locale,
    viewport: { width: 1280, height: 900 },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  return {
    context,
    stop: async () => {
      await context.close();
      rmSync(profile, { recursive: true });
    },
  };
}

/**
 * Returns the violations that axe finds on the current page with its rules for WCAG 2.2 A and AA and best
 * practices.
 */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<{ violations: readonly Violation[] }>("axe.run()");
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}: ${html}: ${failureSummary}`),
  );
}

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** The cost of loading a page in a browser with an empty cache. */
export interface PageCost {
  /** The transferred bytes by file type, including headers. */
  readonly transferred: Readonly<Record<string, number>>;
  readonly bytes: number;
  readonly requests: number;
  readonly elements: number;
  /** The time to the first contentful paint in milliseconds. */
  readonly firstPaintMs: number;
  /** The Cumulative Layout Shift: the sum of unexpected layout shifts. */
  readonly layoutShift: number;
  /** The Total Blocking Time in milliseconds: the time by which tasks exceed 50 ms. */
  readonly blockedMs: number;
}

const observers = `
  globalThis.cost = { firstPaintMs: undefined, layoutShift: 0, blockedMs: 0 };
  const on = (type, add) => new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type, buffered: true });
  on("paint", (entry) => { if (entry.name === "first-contentful-paint") cost.firstPaintMs = entry.startTime; });
  on("layout-shift", (entry) => { if (!entry.hadRecentInput) cost.layoutShift += entry.value; });
  on("longtask", (entry) => { cost.blockedMs += Math.max(0, entry.duration - 50); });`;

/**
 * Measures the cost of loading a page.
 *
 * @param settle waits until the scripts of the page have finished
 */
export async function costOf(
  context: BrowserContext,
  url: string,
  settle: (page: Page) => Promise<unknown> = async () => undefined,
): Promise<PageCost> {
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  const kinds = new Map<string, string>();
  const transferred: Record<string, number> = {};
  devtools.on("Network.responseReceived", ({ requestId, type }) => kinds.set(requestId, type.toLowerCase()));
  devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const kind = kinds.get(requestId) ?? "other";
    transferred[kind] = (transferred[kind] ?? 0) + encodedDataLength;
  });
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  await page.addInitScript(observers);
  await page.goto(url, { waitUntil: "networkidle" });
  await settle(page);
  await page.waitForFunction("cost.firstPaintMs !== undefined");
  // The browser reports painted content one frame later.
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  const measured = await page.evaluate<Pick<PageCost, "firstPaintMs" | "layoutShift" | "blockedMs">>("cost");
  const elements = await page.evaluate<number>('document.querySelectorAll("*").length');
  await page.close();
  const bytes = Object.values(transferred).reduce((a, b) => a + b, 0);
  return { ...measured, transferred, bytes, requests: kinds.size, elements };
}
