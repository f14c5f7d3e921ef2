import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linesPlot } from "../../../tools/bench/common/plot.ts";
import { AuditLog } from "../../../tools/bench/operator/audit.ts";
import { operatorPage, operatorTargets } from "../../../tools/bench/operator/page.ts";
import { countRequests } from "../../../tools/bench/operator/rest.ts";
import {
  type OperatorFigures,
  type OperatorMeasurement,
  ResultsFile,
  readResults,
} from "../../../tools/bench/operator/results.ts";
import { folderOfTests } from "../../support/folder.ts";

const directory = folderOfTests("audit");
const path = join(directory, "audit.log");

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
  it("is read from the last position, with times in microseconds, also after an incomplete line", () => {
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

  it("gives the requests of each operator at rest, and counts Lease writes separately", () => {
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

const run = {
  kind: "run",
  machine: { processor: "p", cores: 2, memoryBytes: 1, node: "24", kernel: "6", loadBefore: 0 },
  plan: { sizes: [100, 500, 1_000], changes: 2, restSeconds: 300, minutes: 35 },
} as const satisfies OperatorMeasurement;

describe("the results of the operator benchmark", () => {
  const at = { processorSeconds: 1, residentBytes: 2 ** 27 };
  const findings: OperatorMeasurement[] = [
    run,
    { kind: "size", name: "ours", size: 100, syncMs: 900, ...at },
    { kind: "size", name: "twin", size: 100, syncMs: 800, ...at },
    { kind: "change", name: "ours", latencyMs: 100 },
    { kind: "change", name: "twin", latencyMs: 90 },
  ];

  it("of a run that was killed while it wrote a line contain the earlier lines, and name the missing part", () => {
    const file = new ResultsFile(join(directory, "kept/results.jsonl"));
    for (const finding of findings) file.add(finding);
    appendFileSync(file.path, '{"kind":"change","na');
    const results = readResults(file.path);
    expect(results).toEqual(file.result);
    expect(results.contenders.map(({ name, latenciesMs }) => [name, latenciesMs])).toEqual([
      ["ours", [100]],
      ["twin", [90]],
    ]);
    const page = operatorPage(results);
    expect(page).toContain("came to 100 TtsDeployments each, not 1000");
    expect(page).toContain("| failover after the leader was killed | under 20 s | not measured | no |");
    expect(page).toContain("| start → in sync | 0.9 s | 0.8 s |");
  });

  it("of a run without measurements are rendered without undefined figures", () => {
    const file = new ResultsFile(join(directory, "kept/nothing.jsonl"));
    file.add(run);
    expect(operatorTargets(file.result).map(({ measured }) => measured)).toEqual(
      Array(7).fill("not measured"),
    );
    expect(operatorPage(file.result)).not.toMatch(/NaN|undefined/);
  });
});

describe("the targets of the operator benchmark", () => {
  const rest = { seconds: 300, writes: 0, leaseWrites: 150, gets: 0, watches: 3, unwanted: [] };
  const sizes = [100, 500, 1_000].map((size) => ({
    size,
    syncMs: 9 * size,
    processorSeconds: 1 + size / 200,
    residentBytes: 2 ** 27,
  }));
  const good: OperatorFigures = {
    name: "ours",
    sizes,
    latenciesMs: [100, 200],
    rest: { rest, residentBytes: 2 ** 27 },
    failoverMs: 17_000,
  };
  const met = (ours: OperatorFigures) =>
    operatorTargets({
      machine: run.machine,
      plan: run.plan,
      contenders: [ours, { ...good, name: "twin" }],
      likeness: { children: 17, different: [] },
      changesPerSecond: 2,
    }).map(({ met }) => met);

  it("are met if all figures are within the limits", () => {
    expect(met(good)).toEqual(Array(7).fill(true));
  });

  it.each<[string, Partial<OperatorFigures>, number[]]>([
    ["a change with a high latency", { latenciesMs: [100, 501] }, [0, 1]],
    ["changes with a higher latency than those of the twin", { latenciesMs: [130, 200] }, [1]],
    ["a slow start", { sizes: sizes.map((size) => ({ ...size, syncMs: 10_001 })) }, [2]],
    ["one write at rest", { rest: { rest: { ...rest, writes: 1 }, residentBytes: 2 ** 27 } }, [3]],
    ["one read at rest", { rest: { rest: { ...rest, gets: 1 }, residentBytes: 2 ** 27 } }, [3]],
    ["too much memory", { rest: { rest, residentBytes: 200 * 2 ** 20 } }, [4]],
    ["a late failover", { failoverMs: 20_000 }, [5]],
    [
      "CPU time that grows with the square of the size",
      { sizes: sizes.map((at) => ({ ...at, processorSeconds: at.size ** 2 })) },
      [6],
    ],
  ])("are missed with %s", (_what, changes, missed) => {
    expect(met({ ...good, ...changes }).flatMap((isMet, i) => (isMet ? [] : [i]))).toEqual(missed);
  });
});

it("linesPlot draws each line from its points, on axes that start at zero", () => {
  const points = [
    { x: 100, y: 1 },
    { x: 1_000, y: 10 },
  ];
  const svg = linesPlot("Cost", "TtsDeployments", [{ title: "seconds", lines: [{ name: "ours", points }] }]);
  expect(svg).toContain('points="72.0,226.0 288.0,64.0"');
  expect(svg).toContain(">1000<");
});
