import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ProcessGroups } from "../../run/process-group.ts";
import { eventually, eventuallyPasses } from "../../support/eventually.ts";
import { folderOfTests } from "../../support/folder.ts";
import { processGone } from "../../support/processes.ts";

const NO_LIMIT_MS = 3_600_000;
const folder = folderOfTests("group");
let logFile: string;
let groups: ProcessGroups;
beforeEach(() => {
  logFile = join(mkdtempSync(join(folder, "run-")), "log");
  groups = new ProcessGroups();
});
afterEach(() => void groups.killLeftovers());

const shell = (text: string) => ["bash", "-c", text];
const log = () => readFileSync(logFile, "utf8");
const loggedPid = () => eventually("the process id", () => Number(/^(\d+)\n/.exec(log())?.[1]) || undefined);

describe("a command in a process group of its own", () => {
  it("writes its output to the log, returns it as complete lines, and reports its exit code", async () => {
    const lines: string[] = [];
    const end = await groups.run(shell("echo out; echo error >&2; printf rest; exit 3"), {
      logFile,
      onOutput: (text) => lines.push(text),
      endAfterMs: NO_LIMIT_MS,
    });
    expect(end).toMatchObject({ exitCode: 3, timedOut: false });
    expect(log()).toBe("out\nerror\nrest");
    expect(lines.join("")).toBe("out\nerror\nrest\n");
  });

  it("is ended with its children when its time is over", async () => {
    const end = await groups.run(shell("sleep 1000 & echo $!; wait"), { logFile, endAfterMs: 1 });
    expect(end).toMatchObject({ timedOut: true, exitCode: 1 });
    await eventuallyPasses(() => expect(groups.leftovers()).toEqual([]));
  });

  it("is ended with its children on request", async () => {
    const running = groups.run(shell("sleep 1000 & echo $!; wait"), { logFile, endAfterMs: NO_LIMIT_MS });
    const pid = await loggedPid();
    await groups.stop();
    expect(await running).toMatchObject({ exitCode: 1, timedOut: false });
    await eventually("the child's end", () => processGone(pid));
    const late = await groups.run(shell("echo late"), { logFile, endAfterMs: NO_LIMIT_MS });
    expect(late).toMatchObject({ exitCode: 1 });
    expect(log()).not.toContain("late");
  });

  it("is ended together with all processes of its group", async () => {
    await groups.run(shell("sleep 1000 & echo $!"), { logFile, endAfterMs: NO_LIMIT_MS });
    const pid = await loggedPid();
    await eventually("the child's end", () => processGone(pid));
  });

  it("reports processes that left its group", async () => {
    // bash remains until the child has its own session
    const leaves = 'setsid sleep 1000 & echo $!; until [ "$(ps -o sid= -p $!)" -eq $! ]; do :; done';
    await groups.run(shell(leaves), { logFile, endAfterMs: NO_LIMIT_MS });
    const pid = await loggedPid();
    await eventually("the sleep", () => groups.leftovers().some(({ command }) => command === "sleep 1000"));
    expect(groups.killLeftovers()).toEqual([{ pid, command: "sleep 1000" }]);
    await eventually("its end", () => processGone(pid));
  });
});
