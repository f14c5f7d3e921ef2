import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { promtool } from "../../support/judges/judges.ts";

const folder = join(import.meta.dirname, "../../../config/prometheus");
let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-tts-rules-"));
});
afterAll(() => rm(work, { recursive: true, force: true }));

/** The tests on rules that were changed. */
async function testChanged(from: string, to: string): Promise<unknown> {
  const rules = await readFile(join(folder, "rules.yaml"), "utf8");
  expect(rules).toContain(from);
  await writeFile(join(work, "rules.yaml"), rules.replaceAll(from, to));
  await writeFile(join(work, "tests.yaml"), await readFile(join(folder, "tests.yaml")));
  return promtool("test", "rules", join(work, "tests.yaml"));
}

describe("the alerts", () => {
  it("are rules that Prometheus takes", async () => {
    const { stdout } = await promtool("check", "rules", join(folder, "rules.yaml"));
    expect(stdout).toContain("SUCCESS");
  });

  it("fire when they should and not when they should not", async () => {
    for (const file of ["tests.yaml", "tests-of-days.yaml"]) {
      const { stdout } = await promtool("test", "rules", join(folder, file));
      expect(stdout).toContain("SUCCESS");
    }
  });

  it.each([
    ["who counts those that hang up as errors", 'outcome="error"', 'outcome!="ok"'],
    ["who asks for another bound than the server has", '"1|1.0"', '"1"'],
    ["who forgets a week", "7 * 86400", "3 * 86400"],
    ["who forgets that the issuer answered another pod", '~"good|revoked"', '="revoked"'],
    ["who does not notice that nobody is there", " or vector(0)", ""],
    ["who takes pods that start for a refused object", "AdmissionDenied|", "AdmissionDenied|PodsNotReady|"],
    [
      "who looks at one process of the operator alone",
      "max by (kind, namespace)",
      "max by (kind, namespace, pod)",
    ],
  ])("are held by tests that fail for one %s", async (_what, from, to) => {
    await expect(testChanged(from, to)).rejects.toThrow(/FAILED/);
  });
});
