import { parseArgs } from "node:util";
import { UsageError } from "../../lib/usage-error.ts";

const flags = {
  namespace: { type: "string", short: "n" },
  kubeconfig: { type: "string" },
  context: { type: "string" },
  output: { type: "string", short: "o" },
  file: { type: "string", short: "f" },
  "operator-namespace": { type: "string" },
} as const;

type Flag = keyof typeof flags;

export interface CommandOptions {
  readonly positionals: readonly string[];
  readonly flags: Readonly<Partial<Record<Flag, string>>>;
}

/** Throws `UsageError` for a flag that is unknown, not among `allowed`, or lacks its value. */
export function parseOptions(
  command: string,
  words: readonly string[],
  allowed: readonly Flag[],
): CommandOptions {
  const options = Object.fromEntries(allowed.map((name) => [name, flags[name]]));
  try {
    const { positionals, values } = parseArgs({ args: [...words], options, allowPositionals: true });
    return { positionals, flags: values as CommandOptions["flags"] };
  } catch (error) {
    const [sentence] = (error instanceof Error ? error.message : String(error)).split(". ");
    throw new UsageError(`${command}: ${sentence}; see tts-operator --help`, { cause: error });
  }
}
