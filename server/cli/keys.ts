import { existsSync, readFileSync } from "node:fs";
import { stringify } from "yaml";
import { type ApiKey, createKey, type Scope, scopes } from "../store/key.ts";
import { addToKeyFile, toFileEntry } from "../store/key-file.ts";
import { type Command, type Options, UsageError } from "./command.ts";
import { writePrivate } from "./private-file.ts";

export const keysCommand: Command = {
  name: "keys create",
  summary: "make an API key: print it once, and its digest for keys.yaml",
  options: {
    name: { value: "NAME", help: "who or what uses the key", required: true },
    scopes: { value: "LIST", help: `of ${scopes.join(", ")}, with commas between`, default: "tts:write" },
    expires: {
      value: "TIME",
      help: "when it ends, as 2027-01-31 or 2027-01-31T12:00:00Z; never unless given",
    },
    file: { value: "PATH", help: "a keys.yaml to add the digest to; made when it is not there" },
  },
  async run(shell, options) {
    const facts = readFacts(options, shell.now());
    const key = createKey();
    if (options.file === undefined) {
      shell.complain("The key, shown this once:");
      shell.print(key);
      shell.complain(`\nThe entry for keys.yaml:\n${stringify({ keys: [toFileEntry(key, facts)] })}`);
    } else {
      addEntry(options.file, key, facts);
      shell.complain(`Its digest is in ${options.file}. The key, shown this once:`);
      shell.print(key);
    }
    return 0;
  },
};

function readFacts({ name = "", scopes: list = "", expires }: Options, now: number): ApiKey {
  const wanted = list.split(",").map((scope) => scope.trim());
  const unknown = wanted.find((scope) => !scopes.includes(scope as Scope));
  if (unknown !== undefined) {
    throw new UsageError(
      `--scopes may hold ${scopes.join(", ")}; ${JSON.stringify(unknown)} is none of them.`,
    );
  }
  if (expires === undefined) return { name, scopes: wanted as Scope[] };
  const expiresAt = Date.parse(expires);
  if (!(expiresAt > now)) {
    throw new UsageError(
      `--expires must be a time to come, as 2027-01-31; it is ${JSON.stringify(expires)}.`,
    );
  }
  return { name, scopes: wanted as Scope[], expiresAt };
}

function addEntry(path: string, key: string, facts: ApiKey): void {
  try {
    writePrivate(path, addToKeyFile(existsSync(path) ? readFileSync(path, "utf8") : "", key, facts));
  } catch (cause) {
    throw new UsageError(`${path}: ${(cause as Error).message}`, { cause });
  }
}
