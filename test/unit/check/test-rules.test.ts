import { describe, expect, it } from "vitest";
import { judgeTests } from "../../check/test-rules.ts";

const findingsIn = (text: string, path = "test/integration/operator/a.test.ts") =>
  judgeTests([{ path, text }]);
const oneFinding = (text: string) => [
  { path: expect.any(String), line: 1, message: expect.stringContaining(text) },
];
/** The value is separate from its option, because these rules also check this file. */
const shortWait = "20s";

describe("the rules for tests refuse", () => {
  it.each([
    ["await eventually('a', look, { limitMs: 5_000 });", "sets limitMs to less than 30 s"],
    ["const short = 2 * 1_000; await eventually('a', look, { limitMs: short });", "sets limitMs"],
    ["await expect.poll(look, { timeout: 1000 }).toBe(1);", "sets timeout to less than 30 s"],
    ["describe('a', { timeout: 29_999 }, () => {});", "sets timeout"],
    ["it('a', () => {}, 10_000);", "gives it less than 30 s"],
    ["beforeAll(start, 10_000);", "gives beforeAll less than 30 s"],
    [`await kubectl('wait', '--for=delete', '--timeout=${shortWait}');`, "sets --timeout to 20 s"],
    ["await fetch(url, { signal: AbortSignal.timeout(500) });", "gives AbortSignal.timeout less than 30 s"],
    ["await vi.waitFor(look);", "waits by vi.waitFor"],
  ])("wait limits under 30 s: %s", (text, message) => {
    expect(findingsIn(text)).toEqual(oneFinding(message));
  });

  it("wait limits for a single file", () => {
    expect(findingsIn("vi.setConfig({ testTimeout: 240_000 });")).toEqual(
      oneFinding("sets testTimeout for a file"),
    );
  });

  it.each([
    [
      'import { setTimeout as sleep } from "node:timers/promises";',
      "imports setTimeout of node:timers/promises",
    ],
    ['import * as timers from "timers/promises";', "imports * of timers/promises"],
    ["await new Promise((resolve) => setTimeout(resolve, 500));", "calls setTimeout"],
    ["globalThis.setTimeout(stop, 500);", "calls setTimeout"],
    ["const sampling = setInterval(look, 50);", "calls setInterval"],
  ])("fixed waits: %s", (text, message) => {
    expect(findingsIn(text)).toEqual(oneFinding(message));
  });

  it.each([
    "expect(performance.now() - startedAt).toBeLessThan(500);",
    "const began = Date.now(); const tookMs = Date.now() - began; expect(tookMs).toBeGreaterThan(900);",
    "function time() { const began = performance.now(); return performance.now() - began; } expect(time()).toBeLessThan(5);",
    "const now = () => performance.now(); const from = now(); expect(now() - from).toBeLessThanOrEqual(5);",
    "const ms = () => Number(1); const at = Date.now(); expect(Math.abs(at - ms())).toBeLessThan(5);",
    "for (const until = later; performance.now() < until; ) seen.add(look());",
    "await eventually('old', () => Date.now() > limit);",
  ])("assertions about elapsed time: %s", (text) => {
    expect(findingsIn(text)).toEqual(oneFinding("asserts on elapsed time"));
  });

  it.each([
    ["server.listen(8080);", "listens on a fixed port"],
    ["await app.listen({ host, port: 8080 });", "listens on a fixed port"],
    ["taken.listen(8080 + offset, '127.0.0.1', resolve);", "listens on a fixed port"],
    ["const port = 9000; server.listen(port);", "listens on a fixed port"],
    ["const port = await freePort();", "closed again (freePort)"],
    ["const [a, b] = await freePorts(2);", "closed again (freePorts)"],
  ])("ports that another program may use: %s", (text, message) => {
    expect(findingsIn(text)).toEqual(oneFinding(message));
  });

  it.each([
    "const kubectl = new Kubectl('shared');",
    "await admin.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shared' } });",
    "await kubectl('create', 'namespace', 'shared');",
    "await helm(['install', 'a', chart, '--namespace', 'shared', '--create-namespace']);",
  ])("namespaces that two files create: %s", (text) => {
    const other = { path: "test/e2e/b.test.ts", text: "const kubectl = new Kubectl('shared');" };
    const both = judgeTests([{ path: "test/e2e/a.test.ts", text }, other]);
    expect(both.map(({ path }) => path)).toEqual(["test/e2e/a.test.ts", "test/e2e/b.test.ts"]);
    expect(both[0]?.message).toContain("creates namespace shared, as test/e2e/b.test.ts does");
  });
});

describe("the rules for tests allow", () => {
  it.each([
    "await eventually('a', look, { limitMs: 30_000 });",
    "const client = new ClusterClient(connection, { timeoutMs: 100 });",
    "await kubectl('wait', '--timeout=120s');",
    "it('a', { timeout: 240_000 }, () => {});",
    'import { setImmediate as turn } from "node:timers/promises";',
    "vi.advanceTimersByTime(500);",
    "answerAfter(500, () => response.end());",
    "const key = { createdAt: Date.now() - 86_400_000 }; expect(key.createdAt).toBeLessThan(limit);",
    "const order = first.startMs - second.startMs; expect(order).toBeLessThan(0);",
    "const clock = new FakeClock(Date.now());",
    "console.info(performance.now() - startedAt);",
    "server.listen(0, '127.0.0.1');",
    "await app.listen({ host, port: 0 });",
    "const service = { spec: { ports: [{ port: 8080 }] } };",
    "const kubectl = new Kubectl('mine'); const again = new Kubectl('mine');",
    "const object = { kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' } };",
  ])("%s", (text) => {
    expect(findingsIn(text)).toEqual([]);
  });

  it("everything in files outside of test/unit, test/integration and test/e2e", () => {
    const text = "await new Promise((resolve) => setTimeout(resolve, 500)); server.listen(8080);";
    expect(findingsIn(text, "test/support/a.ts")).toEqual([]);
    expect(findingsIn(text, "test/bench/a.ts")).toEqual([]);
  });
});
