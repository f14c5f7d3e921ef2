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

describe("a command in its own process group", () => {
  it("writes its output to the log, reports it in complete lines, and returns its exit code", async () => {
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

  it("is killed with its children when its time limit is reached", async () => {
    const end = await groups.run(shell("sleep 1000 & echo $!; wait"), { logFile, endAfterMs: 1 });
    expect(end).toMatchObject({ timedOut: true, exitCode: 1 });
    await eventuallyPasses(() => expect(groups.leftovers()).toEqual([]));
  });

  it("is killed with its children by stop(), and later commands do not start", async () => {
    const running = groups.run(shell("sleep 1000 & echo $!; wait"), { logFile, endAfterMs: NO_LIMIT_MS });
    const pid = await loggedPid();
    await groups.stop();
    expect(await running).toMatchObject({ exitCode: 1, timedOut: false });
    await eventually("the child process has ended", () => processGone(pid));
    const late = await groups.run(shell("echo late"), { logFile, endAfterMs: NO_LIMIT_MS });
    expect(late).toMatchObject({ exitCode: 1 });
    expect(log()).not.toContain("late");
  });

  it("leaves no background process of its group when it ends", async () => {
    await groups.run(shell("sleep 1000 & echo $!"), { logFile, endAfterMs: NO_LIMIT_MS });
    const pid = await loggedPid();
    await eventually("the child process has ended", () => processGone(pid));
  });

  it("is reported with processes that left its group, which killLeftovers() kills", async () => {
    // bash waits until the child has its own session.
    const leaveGroup = 'setsid sleep 1000 & echo $!; until [ "$(ps -o sid= -p $!)" -eq $! ]; do :; done';
    await groups.run(shell(leaveGroup), { logFile, endAfterMs: NO_LIMIT_MS });
    const pid = await loggedPid();
    await eventually("the process is among the leftovers", () =>
      groups.leftovers().some(({ command }) => command === "sleep 1000"),
    );
    expect(groups.killLeftovers()).toEqual([{ pid, command: "sleep 1000" }]);
    await eventually("the process has ended", () => processGone(pid));
  });
});
