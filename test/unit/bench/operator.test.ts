import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { AuditLog } from "../../bench/operator/audit.ts";
import { operatorTargets } from "../../bench/operator/page.ts";
import { linesPlot } from "../../bench/operator/plot.ts";
import { countRequests } from "../../bench/operator/rest.ts";
import type { Figures } from "../../bench/operator/run.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-tts-audit-"));
const path = join(directory, "audit.log");
afterAll(() => rmSync(directory, { recursive: true }));

function line(user: string, verb: string, resource: string, subresource?: string): string {
  const event = {
    user: { username: user },
    verb,
    objectRef: { resource, subresource, namespace: "ns", name: "a" },
    responseStatus: { code: 200 },
    stageTimestamp: "2026-01-01T00:00:00.000250Z",
  };
  return `${JSON.stringify(event)}\n`;
}

describe("the audit log", () => {
  it("is read on from where it was read last, to the microsecond, however its lines are cut", () => {
    const whole = line("me", "patch", "deployments", "status");
    writeFileSync(path, whole.slice(0, 40));
    const log = new AuditLog(path);
    expect([...log.news()]).toEqual([]);
    appendFileSync(path, whole.slice(40) + whole);
    const [first, ...more] = [...log.news()];
    expect(first).toMatchObject({ user: "me", verb: "patch", resource: "deployments/status", status: 200 });
    expect(first?.answeredMs).toBe(Date.parse("2026-01-01") + 0.25);
    expect(more).toHaveLength(1);
    expect([...log.news()]).toEqual([]);
    log.close();
  });

  it("tells at rest each operator's own requests, and a Lease's writes apart", () => {
    writeFileSync(
      path,
      [
        ...["update", "update", "get"].map((verb) => line("me", verb, "leases")),
        ...["watch", "list", "patch"].map((verb) => line("me", verb, "pods")),
        line("other", "patch", "pods"),
      ].join(""),
    );
    const log = new AuditLog(path);
    const [rest] = countRequests(log, [{ namespace: "ns", user: "me", accountFolder: "" }], 300);
    expect(rest).toEqual({
      seconds: 300,
      writes: 1,
      leaseWrites: 2,
      gets: 2,
      watches: 1,
      unwanted: ["list pods", "patch pods", "get leases"],
    });
    log.close();
  });
});

describe("the targets", () => {
  const rest = { seconds: 300, writes: 0, leaseWrites: 150, gets: 0, watches: 3, unwanted: [] };
  const sizes = [100, 500, 1_000].map((size) => ({
    size,
    syncMs: 9 * size,
    processorSeconds: 1 + size / 200,
    residentBytes: 2 ** 27,
  }));
  const good: Figures = {
    name: "ours",
    sizes,
    latenciesMs: [100, 200],
    rest,
    residentBytes: 2 ** 27,
    failoverMs: 17_000,
  };
  const likeness = { children: 17, different: [] };
  const met = (ours: Figures) =>
    operatorTargets({ contenders: [ours, { ...good, name: "twin" }], likeness }).map(({ met }) => met);

  it("are met by figures within them", () => {
    expect(met(good)).toEqual(Array(7).fill(true));
  });

  it.each<[string, Partial<Figures>, number[]]>([
    ["a late change", { latenciesMs: [100, 501] }, [0, 1]],
    ["changes that are late against the twin", { latenciesMs: [130, 200] }, [1]],
    ["a slow start", { sizes: sizes.map((size) => ({ ...size, syncMs: 10_001 })) }, [2]],
    ["one write at rest", { rest: { ...rest, writes: 1 } }, [3]],
    ["one read at rest", { rest: { ...rest, gets: 1 } }, [3]],
    ["too much memory", { residentBytes: 200 * 2 ** 20 }, [4]],
    ["a late heir", { failoverMs: 20_000 }, [5]],
    [
      "cost that grows with the square",
      { sizes: sizes.map((at) => ({ ...at, processorSeconds: at.size ** 2 })) },
      [6],
    ],
  ])("are missed by %s", (_what, wrong, missed) => {
    expect(met({ ...good, ...wrong }).flatMap((isMet, i) => (isMet ? [] : [i]))).toEqual(missed);
  });
});

it("the plot draws each line from its own points, on axes from zero", () => {
  const points = [
    { x: 100, y: 1 },
    { x: 1_000, y: 10 },
  ];
  const svg = linesPlot("Cost", "TtsDeployments", [{ title: "seconds", lines: [{ name: "ours", points }] }]);
  expect(svg).toContain('points="72.0,226.0 288.0,64.0"');
  expect(svg).toContain(">1000<");
});
