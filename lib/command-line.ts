import { readFileSync } from "node:fs";
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { UsageError } from "./usage-error.ts";

/** The parts of the process that a command may use. `main.ts` creates them. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborts when the process is asked to stop. */
  readonly signal: AbortSignal;
  /** The command line of this program without the command and its options: the runtime and its arguments. */
  readonly program: readonly [runtime: string, ...rest: string[]];
  readonly print: (text: string) => void;
  readonly complain: (text: string) => void;
  /** Returns the lines of standard input. Standard input is opened when a command calls this function. */
  readonly readLines?: () => AsyncIterable<string>;
  /** The time in milliseconds since the epoch. */
  readonly now: () => number;
}

export interface Option {
  /**
   * Placeholder of the value in the help text, such as `DAYS`. An option without a placeholder is a switch.
   */
  readonly value?: string;
  readonly help: string;
  readonly default?: string;
  readonly required?: true;
}

export interface Command {
  /** One or two words, such as `license issue`. */
  readonly name: string;
  readonly summary: string;
  readonly options: Readonly<Record<string, Option>>;
  /** Text below the options in the help. */
  readonly notes?: string;
  /** Returns the exit code. */
  readonly run: (shell: Shell, options: OptionValues) => Promise<number>;
}

/** Values by flag. The value of a switch on the command line is "yes". */
export type OptionValues = Readonly<Record<string, string | undefined>>;

/**
 * Runs the command that `words` begins with. Returns the exit code: 0 for success, 1 for a failure, and 2 for
 * a usage error.
 */
export async function runCommand(
  program: string,
  commands: readonly Command[],
  words: readonly string[],
  shell: Shell,
): Promise<number> {
  if (words[0] === "--version") {
    shell.print(version());
    return 0;
  }
  if (words[0] === "help") return runCommand(program, commands, [...words.slice(1), "--help"], shell);
  try {
    const command = findCommand(commands, words);
    if (!command) return explain(program, commands, words, shell);
    const rest = words.slice(command.name.split(" ").length);
    if (asksForHelp(rest)) {
      shell.print(commandHelp(program, command));
      return 0;
    }
    return await command.run(shell, readOptions(program, command, rest));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    shell.complain(error.message);
    return 2;
  }
}

function version(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

function findCommand(commands: readonly Command[], words: readonly string[]): Command | undefined {
  return commands.find(({ name }) => name.split(" ").every((word, i) => words[i] === word));
}

function asksForHelp(words: readonly string[]): boolean {
  return words.includes("--help") || words.includes("-h");
}

function explain(
  program: string,
  commands: readonly Command[],
  words: readonly string[],
  shell: Shell,
): number {
  const first = words.find((word) => !word.startsWith("-"));
  const group = commands.filter(({ name }) => name.startsWith(`${first} `));
  const help = overview(program, group.length > 0 ? group : commands);
  if (asksForHelp(words) && (first === undefined || group.length > 0)) {
    shell.print(help);
    return 0;
  }
  shell.complain(`${program}: ${whyNoCommand(words, group)}\n\n${help}`);
  return 2;
}

function whyNoCommand(words: readonly string[], group: readonly Command[]): string {
  if (words.length === 0) return "no command was given";
  if (group.length > 0 && words.length === 1)
    return `\`${words[0]}\` is not a complete command; add one of the words below`;
  return `unknown command \`${words.join(" ")}\``;
}

function overview(program: string, commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [`usage: ${program} COMMAND [--help], or --version`, "", ...lines].join("\n");
}

function commandHelp(program: string, { name, summary, options, notes }: Command): string {
  const entries = Object.entries(options).map(([flag, option]) => [written(flag, option), option] as const);
  const width = Math.max(0, ...entries.map(([left]) => left.length));
  const lines = entries.map(([left, option]) => `  ${left.padEnd(width)}  ${option.help}${ending(option)}`);
  const usage = `usage: ${program} ${name}${entries.length > 0 ? " [options]" : ""}`;
  return [
    usage,
    "",
    summary,
    ...(lines.length > 0 ? ["", ...lines] : []),
    ...(notes ? ["", notes] : []),
  ].join("\n");
}

function written(flag: string, { value }: Option): string {
  return value === undefined ? `--${flag}` : `--${flag} ${value}`;
}

function ending(option: Option): string {
  if (option.required) return " (required)";
  return option.default === undefined ? "" : ` (default ${option.default})`;
}

function readOptions(program: string, { name, options }: Command, words: readonly string[]): OptionValues {
  const config: ParseArgsOptionsConfig = Object.fromEntries(
    Object.entries(options).map(([flag, { value }]) => [
      flag,
      { type: value === undefined ? "boolean" : "string" } as const,
    ]),
  );
  const parsed = parseStrictly(words, config, `${program} ${name}`, Object.keys(options));
  const missing = Object.entries(options).find(
    ([flag, option]) => option.required && parsed[flag] === undefined,
  );
  if (missing) {
    throw new UsageError(`${program} ${name}: ${written(...missing)} is required: ${missing[1].help}`);
  }
  return Object.fromEntries(
    Object.entries(options).map(([flag, option]) => [flag, parsed[flag] ?? option.default]),
  );
}

function parseStrictly(
  words: readonly string[],
  options: ParseArgsOptionsConfig,
  command: string,
  flags: readonly string[],
): OptionValues {
  try {
    const args = joinNegatives(words, options);
    const { values } = parseArgs({ args, options, strict: true, allowPositionals: false });
    return Object.fromEntries(
      Object.entries(values).map(([flag, value]) => [flag, value === true ? "yes" : String(value)]),
    );
  } catch (cause) {
    const allowed =
      flags.length > 0 ? `it takes ${flags.map((flag) => `--${flag}`).join(", ")}` : "it takes no options";
    const reason = (cause as Error).message.split(/[.\n]/, 1)[0];
    throw new UsageError(`${command}: ${reason}; ${allowed}. See ${command} --help.`, { cause });
  }
}

/**
 * Joins `--days -1` to `--days=-1`. Otherwise a negative number would be parsed as an option, and the command
 * could not validate the number.
 */
function joinNegatives(words: readonly string[], options: ParseArgsOptionsConfig): string[] {
  const joined: string[] = [];
  for (const word of words) {
    const flag = joined.at(-1) ?? "";
    const takesValue = options[flag.replace(/^--/, "")]?.type === "string";
    if (takesValue && /^-[\d.]/.test(word)) joined[joined.length - 1] = `${flag}=${word}`;
    else joined.push(word);
  }
  return joined;
}
