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

/** Replaces a text in the alert rules, and runs the rule tests of promtool with the changed rules. */
async function testChanged(from: string, to: string): Promise<unknown> {
  const rules = await readFile(join(folder, "rules.yaml"), "utf8");
  expect(rules).toContain(from);
  await writeFile(join(work, "rules.yaml"), rules.replaceAll(from, to));
  await writeFile(join(work, "tests.yaml"), await readFile(join(folder, "tests.yaml")));
  return promtool("test", "rules", join(work, "tests.yaml"));
}

describe("the alerts", () => {
  it("are valid Prometheus rules", async () => {
    const { stdout } = await promtool("check", "rules", join(folder, "rules.yaml"));
    expect(stdout).toContain("SUCCESS");
  });

  it("fire only in their documented cases", async () => {
    for (const file of ["tests.yaml", "tests-of-days.yaml"]) {
      const { stdout } = await promtool("test", "rules", join(folder, file));
      expect(stdout).toContain("SUCCESS");
    }
  });

  it.each([
    ["that counts disconnected clients as errors", 'outcome="error"', 'outcome!="ok"'],
    ["with another bucket bound than the server", '"1|1.0"', '"1"'],
    [
      "that ignores mounted models",
      "svc_tts:streams:utilisation > 0.9 or svc_tts:mounted_model_streams:utilisation > 0.9",
      "svc_tts:streams:utilisation > 0.9",
    ],
    ["that depends on a single scrape of a mounted model", "avg_over_time", "last_over_time"],
    ["that counts JSON responses as streams", '{variant!~"json-.*"}', ""],
    ["with three days in place of seven", "7 * 86400", "3 * 86400"],
    ["that ignores the response of the issuer to another pod", '~"good|revoked"', '="revoked"'],
    ["that does not detect missing pods", " or vector(0)", ""],
    ["that fires while a canary waits as configured", "AwaitingMaintenanceWindow|Canary", "Trading"],
    ["that counts starting pods as a rejected object", "AdmissionDenied|", "AdmissionDenied|PodsNotReady|"],
    [
      "that evaluates each process of the operator separately",
      "max by (kind, namespace)",
      "max by (kind, namespace, pod)",
    ],
  ])("have tests that fail for an alert %s", async (_what, from, to) => {
    await expect(testChanged(from, to)).rejects.toThrow(/FAILED/);
  });
});
