import { type Command, runCommand, type Shell } from "../../../lib/command-line.ts";

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command in this process, because a separate process takes seconds to start. */
export async function runInProcess(
  commands: readonly Command[],
  words: readonly string[],
  context: Partial<Shell> = {},
): Promise<CommandResult> {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand("svc-tts", commands, words, {
    env: {},
    signal: new AbortController().signal,
    program: ["node"],
    print: (text) => out.push(text),
    complain: (text) => err.push(text),
    now: () => Date.now(),
    ...context,
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}
