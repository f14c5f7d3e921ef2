/** How often each test failed in repeated runs. */
import { type Failure, failuresOf, type VitestReport } from "../report.ts";

export interface Repetition {
  readonly report: VitestReport | undefined;
  readonly exitCode: number;
}

export interface Rate {
  readonly file: string;
  readonly title: string;
  readonly failed: number;
  /** The distinct messages. */
  readonly messages: readonly string[];
}

/** The tests that failed at least once, sorted by the number of failures. */
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

/** A paragraph for each test: rate, file, title, messages. The last line has the number of failed tests. */
export function describeRates(rates: readonly Rate[], repetitions: number): string {
  const paragraphs = rates.map(({ file, title, failed, messages }) =>
    [
      `${failed} of ${repetitions} failed: ${file} > ${title}`,
      ...messages.flatMap((message) => message.split("\n").map((line) => `    ${line}`)),
    ].join("\n"),
  );
  const verdict = `${rates.length} tests failed at least once in ${repetitions} runs`;
  return [...paragraphs, verdict].join("\n\n");
}
