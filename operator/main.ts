#!/usr/bin/env node
// These handlers are set before other modules load, because the first process of a container ignores signals
// without a handler.
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
// An open request, for example to an API server that does not respond, must not delay the exit.
process.exit(code);

export {};
