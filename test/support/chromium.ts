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

/** Chromium as Debian has it, with a profile of its own that nobody used before. @param locale that it asks pages for. */
export async function startBrowser(locale = "en-US"): Promise<TestBrowser> {
  const executablePath = programs.find((path) => existsSync(path));
  if (executablePath === undefined) throw new Error("Chromium is not there: sudo apt-get install chromium");
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

/** What axe finds wrong with the page as it is now, by its rules for WCAG 2.2 A and AA and its best practices. */
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
