#!/usr/bin/env node
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Shell } from "../lib/command-line.ts";

// The handlers are installed before other modules are loaded. The first process of a container (PID 1)
// ignores signals that have no handler.
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
process.on("SIGINT", () => {
  if (stop.signal.aborted) process.exit(130); // A second Ctrl-C exits immediately.
  stop.abort();
});
// The channel to `svc-tts all` closes when that process has exited for any reason.
process.once("disconnect", () => stop.abort());
// The channel may have closed already. Without a channel, `connected` is undefined.
if (process.connected === false) stop.abort();

const shell: Shell = {
  env: process.env,
  signal: stop.signal,
  program: [process.execPath, ...process.execArgv, fileURLToPath(import.meta.url)],
  print: (text) => console.log(text),
  complain: (text) => console.error(text),
  readLines: () => createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }),
  now: () => Date.now(),
};

try {
  const [{ runCommand }, { commands }] = await Promise.all([
    import("../lib/command-line.ts"),
    import("./cli/commands.ts"),
  ]);
  process.exitCode = await runCommand("svc-tts", commands, process.argv.slice(2), shell);
} catch (error) {
  console.error(`svc-tts: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  if (process.connected) process.disconnect();
}
