import { readFileSync } from "node:fs";
import { type Clock, every } from "./clock.ts";

export interface WatchedFile<Value> {
  /**
   * The last valid value. It is undefined before the first valid value, and after a deletion if `whenAbsent`
   * is `forget`.
   */
  current(): Value | undefined;
  onChange(listener: () => void): void;
  close(): void;
}

export interface FileWatchOptions<Value> {
  readonly path: string;
  /** Parses the text of the file. Throws an error that describes invalid text. */
  readonly parse: (text: string) => Value;
  /** Called once for each new content that cannot be parsed. The last valid value is kept. */
  readonly onError: (error: Error) => void;
  /** After a deletion of the file, `keep` keeps the last value and `forget` makes it undefined. */
  readonly whenAbsent: "keep" | "forget";
  readonly intervalMs?: number;
  readonly clock: Clock;
}

/** The limit of the file size. Watched files (routing tables, keys, licenses) are smaller. */
const maxBytes = 8 * 1024 * 1024;

/**
 * Watches a small file by polling. The kubelet updates mounted Secrets and ConfigMaps by replacing symbolic
 * links, for which the operating system reports no file event.
 * Throws if the file exists at the start and cannot be parsed.
 */
export function watchFile<Value>(options: FileWatchOptions<Value>): WatchedFile<Value> {
  const listeners = new Set<() => void>();
  let text = readText(options.path);
  let value = text === undefined ? undefined : parseNamed(options, text);

  let complaint: string | undefined;

  const look = () => {
    try {
      const next = readText(options.path);
      complaint = next === text ? complaint : undefined;
      if (next === text) return;
      text = next;
      if (next !== undefined) value = parseNamed(options, next);
      else if (options.whenAbsent === "forget") value = undefined;
      for (const listener of listeners) listener();
    } catch (error) {
      if ((error as Error).message !== complaint) options.onError(error as Error);
      complaint = (error as Error).message;
    }
  };
  const stop = every(options.clock, options.intervalMs ?? 1000, look);

  return {
    current: () => value,
    onChange: (listener) => void listeners.add(listener),
    close: stop,
  };
}

function parseNamed<Value>({ path, parse }: FileWatchOptions<Value>, text: string): Value {
  try {
    return parse(text);
  } catch (cause) {
    throw new Error(`${path}: ${(cause as Error).message}`, { cause });
  }
}

function readText(path: string): string | undefined {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > maxBytes)
      throw new Error(`${path} has ${bytes.length} bytes, more than the limit of ${maxBytes}`);
    return bytes.toString();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
