import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { pythonWith } from "../python.ts";

/**
 * A Python program that uses a published client. It reads one JSON object per line, and prints one JSON
 * object for each line.
 */
export interface ClientProgram {
  /** @throws Error with the log of the program if it fails */
  ask<Answer>(order: object): Promise<Answer>;
  stop(): Promise<void>;
}

interface Waiting {
  resolve(line: string): void;
  reject(error: Error): void;
}

/** The number of lines of the log that an error contains. */
const shownLines = 60;

/**
 * @param packages the Python packages, as `name==version`
 * @param file the program
 */
export async function startClientProgram(packages: readonly string[], file: string): Promise<ClientProgram> {
  const python = await pythonWith(packages);
  const child = spawn(python, ["-u", file]);
  const waiting: Waiting[] = [];
  const log: string[] = [];
  let hasEnded = false;
  const failure = (problem: string) => new Error(`${file}: ${problem}\n${log.slice(-shownLines).join("\n")}`);
  const rejectAll = () => {
    for (const { reject } of waiting.splice(0)) reject(failure("the program has ended"));
  };
  createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
  createInterface({ input: child.stdout }).on("line", (line) => waiting.shift()?.resolve(line));
  child.stdin.on("error", rejectAll);
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => {
      hasEnded = true;
      rejectAll();
      resolve();
    });
  });
  const answerTo = (order: object) =>
    new Promise<string>((resolve, reject) => {
      waiting.push({ resolve, reject });
      if (hasEnded) rejectAll();
      else child.stdin.write(`${JSON.stringify(order)}\n`);
    });
  return {
    ask: async <Answer>(order: object) => {
      const answer = JSON.parse(await answerTo(order)) as Answer & { readonly error?: string };
      if (answer.error !== undefined) throw failure(answer.error);
      return answer;
    },
    stop: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
