import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { promtool } from "../../support/judges/judges.ts";

const folder = join(import.meta.dirname, "../../../config/prometheus");
let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-tts-rules-"));
});
afterAll(() => rm(work, { recursive: true, force: true }));

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert?: string; readonly record?: string; readonly expr: string }[];
  }[];
}

interface RuleTests {
  readonly tests: readonly { readonly alert_rule_test: readonly { readonly alertname: string }[] }[];
}

/**
 * Runs the rule tests of one alert with promtool. Other alerts, and recording rules that the alert does not
 * read, are left out, because promtool takes seconds to evaluate all rules.
 */
async function testAlert(alert: string, rules: string): Promise<unknown> {
  const { groups } = parse(rules) as Rules;
  const expr = groups.flatMap((group) => group.rules).find((rule) => rule.alert === alert)?.expr ?? "";
  const read = groups.map((group) => ({
    ...group,
    rules: group.rules.filter((rule) => (rule.record ? expr.includes(rule.record) : rule.alert === alert)),
  }));
  // The other schemas of YAML read the series `0x60`, sixty zeros, as a hexadecimal number.
  const all = parse(await readFile(join(folder, "tests.yaml"), "utf8"), { schema: "failsafe" }) as RuleTests;
  const tests = all.tests
    .map((test) => ({
      ...test,
      alert_rule_test: test.alert_rule_test.filter(({ alertname }) => alertname === alert),
    }))
    .filter((test) => test.alert_rule_test.length > 0);
  expect(tests).not.toEqual([]);
  await writeFile(join(work, "rules.yaml"), JSON.stringify({ groups: read }));
  await writeFile(join(work, "tests.yaml"), JSON.stringify({ ...all, tests }));
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
    [
      "SvcTtsErrorBudgetBurnsFast",
      "that counts disconnected clients as errors",
      'outcome="error"',
      'outcome!="ok"',
    ],
    ["SvcTtsFirstAudioSlow", "with another bucket bound than the server", '"1|1.0"', '"1"'],
    [
      "SvcTtsSaturated",
      "that ignores mounted models",
      "svc_tts:streams:utilisation > 0.9 or svc_tts:mounted_model_streams:utilisation > 0.9",
      "svc_tts:streams:utilisation > 0.9",
    ],
    [
      "SvcTtsSaturated",
      "that depends on a single scrape of a mounted model",
      "avg_over_time",
      "last_over_time",
    ],
    ["SvcTtsUnderruns", "that counts JSON responses as streams", '{variant!~"json-.*"}', ""],
    ["SvcTtsLicenseExpiresSoon", "with three days in place of seven", "7 * 86400", "3 * 86400"],
    [
      "SvcTtsLicenseIssuerSilent",
      "that ignores the response of the issuer to another pod",
      '~"good|revoked"',
      '="revoked"',
    ],
    ["SvcTtsOperatorWithoutLeader", "that does not detect missing pods", " or vector(0)", ""],
    [
      "SvcTtsNotReady",
      "that fires while a canary waits as configured",
      "AwaitingMaintenanceWindow|Canary",
      "Trading",
    ],
    [
      "SvcTtsChildNotApplied",
      "that counts starting pods as a rejected object",
      "AdmissionDenied|",
      "AdmissionDenied|PodsNotReady|",
    ],
    [
      "SvcTtsOperatorWatchErrors",
      "that evaluates each process of the operator separately",
      "max by (kind, namespace)",
      "max by (kind, namespace, pod)",
    ],
  ])("have tests of %s that fail for an alert %s", async (alert, _what, from, to) => {
    const rules = await readFile(join(folder, "rules.yaml"), "utf8");
    expect(rules).toContain(from);
    await testAlert(alert, rules);
    await expect(testAlert(alert, rules.replaceAll(from, to))).rejects.toThrow(/FAILED/);
  });
});
