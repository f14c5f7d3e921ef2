#!/usr/bin/env node
import { fileURLToPath } from "node:url";
import { allCommand } from "./cli/all.ts";
import { benchCommand } from "./cli/bench.ts";
import { runCommand, type Shell } from "./cli/command.ts";
import { keysCommand } from "./cli/keys.ts";
import { licenseCommands } from "./cli/license.ts";
import { apiCommand, modelCommands } from "./cli/serve.ts";

const commands = [apiCommand, ...modelCommands, allCommand, ...licenseCommands, keysCommand, benchCommand];

const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
process.on("SIGINT", () => {
  if (stop.signal.aborted) process.exit(130); // a second Ctrl-C does not wait
  stop.abort();
});
// The channel to `svc-tts all` closes when that process is gone, however it went.
process.once("disconnect", () => stop.abort());
if (process.connected === false) stop.abort(); // gone before we looked; undefined where there never was a channel

const shell: Shell = {
  env: process.env,
  signal: stop.signal,
  program: [process.execPath, ...process.execArgv, fileURLToPath(import.meta.url)],
  print: (text) => console.log(text),
  complain: (text) => console.error(text),
  now: () => Date.now(),
};

try {
  process.exitCode = await runCommand("svc-tts", commands, process.argv.slice(2), shell);
} catch (error) {
  console.error(`svc-tts: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  if (process.connected) process.disconnect();
}
