#!/usr/bin/env node
// Before anything else is loaded: the first process of a container never sees a signal that it does not handle yet.
const stopping = Promise.withResolvers<string>();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.resolve(signal));

const { runOperatorCommand } = await import("./cli/command.ts");
const code = await runOperatorCommand(process.argv.slice(2), {
  environment: process.env,
  stopping: stopping.promise,
  print: (text) => process.stdout.write(text),
  complain: (text) => process.stderr.write(text),
  leave: (status) => process.exit(status),
});
// what is still open, as a request to an API server that hangs, does not keep it
process.exit(code);

export {};
