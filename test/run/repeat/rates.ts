/** Computes how often each test failed in repeated runs. */
import { type Failure, failuresOf, plural, type VitestReport } from "../report.ts";

export interface Repetition {
  readonly report: VitestReport | undefined;
  readonly exitCode: number;
}

export interface Rate {
  readonly file: string;
  readonly title: string;
  readonly failed: number;
  /** The different messages of the failures. */
  readonly messages: readonly string[];
}

/** Returns the tests that failed at least once, sorted by the number of failures. */
export function failureRates(repetitions: readonly Repetition[], folder: string): Rate[] {
  const found = new Map<string, { failure: Failure; failed: number; messages: Set<string> }>();
  for (const { report, exitCode } of repetitions) {
    for (const failure of failuresOf(report, exitCode, folder)) {
      const key = `${failure.file} > ${failure.title}`;
      const entry = found.get(key) ?? { failure, failed: 0, messages: new Set() };
      entry.failed += 1;
      entry.messages.add(failure.message);
      found.set(key, entry);
    }
  }
  return [...found.values()]
    .map(({ failure: { file, title }, failed, messages }) => ({
      file,
      title,
      failed,
      messages: [...messages],
    }))
    .sort((a, b) => b.failed - a.failed);
}

/**
 * Returns a paragraph for each test with its rate, file, title and messages. The last line has the totals.
 */
export function describeRates(rates: readonly Rate[], repetitions: number): string {
  const paragraphs = rates.map(({ file, title, failed, messages }) =>
    [
      `${failed} of ${repetitions} failed: ${file} > ${title}`,
      ...messages.flatMap((message) => message.split("\n").map((line) => `    ${line}`)),
    ].join("\n"),
  );
  const verdict = `${plural(rates.length, "test")} failed at least once in ${plural(repetitions, "run")}`;
  return [...paragraphs, verdict].join("\n\n");
}
