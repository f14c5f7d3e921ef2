import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fetchInBackground } from "../../../server/cli/background-fetch.ts";
import { eventually } from "../../support/eventually.ts";
import { folderOfTests } from "../../support/folder.ts";
import { processGone } from "../../support/processes.ts";

const folder = folderOfTests("background-fetch");

const example = "curl -sS http://127.0.0.1:8000/v1/svc-tts -o heart.wav";

/** Starts a background fetch. The given program replaces `svc-tts`. */
function start(program: string, ready = Promise.resolve(true)) {
  const file = join(folder, `${crypto.randomUUID()}.mjs`);
  writeFileSync(file, program);
  const printed: string[] = [];
  const stop = new AbortController();
  const shell = {
    env: {},
    signal: stop.signal,
    program: [process.execPath, file] as const,
    print: (text: string) => void printed.push(text),
    complain: (text: string) => void printed.push(text),
    now: () => 0,
  };
  const model = { id: "kokoro-82m", example, ready };
  return { printed, stop, ended: fetchInBackground(shell, model, stop.signal) };
}

describe("a model that is installed while the tiers run", () => {
  it("reports its progress, and prints an example request at the end", async () => {
    const { printed, ended } = start(
      'console.log("arguments: " + process.argv.slice(2).join(" ")); process.disconnect();',
    );
    await ended;
    expect(printed).toEqual([
      "    natural voices: arguments: models get kokoro-82m",
      `    natural voices: installed, and available in a few seconds. Try a voice in another terminal:\n\n${example}\n`,
    ]);
  });

  it("prints the command only when the tiers respond", async () => {
    const ready = Promise.withResolvers<boolean>();
    const program = 'console.log("was installed before"); process.disconnect();';
    const { printed, ended } = start(program, ready.promise);
    await eventually("it has ended", () => printed.length > 0);
    expect(printed.join()).not.toContain(example);
    ready.resolve(true);
    await ended;
    expect(printed.join()).toContain(example);
    const late = start("process.disconnect();", Promise.resolve(false));
    await late.ended;
    expect(late.printed).toEqual(["    natural voices: installed"]);
  });

  it("reports the cause of a failure, and the tiers continue", async () => {
    const { printed, ended } = start(
      'console.error("no network"); process.exitCode = 1; process.disconnect();',
    );
    await ended;
    expect(printed).toEqual([
      "    natural voices: no network",
      "    natural voices: not installed; the built-in voices stay in use. Try again: svc-tts models get kokoro-82m",
    ]);
  });

  it("is stopped with the tiers", async () => {
    const { printed, stop, ended } = start("console.log(process.pid); setInterval(() => 0, 1000);");
    await eventually("the program runs", () => printed.length > 0);
    stop.abort();
    await ended;
    expect(processGone(Number(printed[0]?.split(": ")[1]))).toBe(true);
    expect(printed).toHaveLength(1);
  });
});
