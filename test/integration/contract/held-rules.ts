import { relative } from "node:path";
import { afterAll, beforeEach, expect, it } from "vitest";
import { heldBy, type RuleId } from "./rules.ts";

const root = new URL("../../..", import.meta.url).pathname;

export interface HeldRules {
  /** Defines a test with the rules in its title. */
  it(rules: readonly RuleId[], title: string, body: () => Promise<void>): void;
  /** Wraps the body of a table test. The first element of each row is the list of its rules. */
  row<Row extends readonly [readonly RuleId[], ...unknown[]]>(
    body: (...row: Row) => Promise<void>,
  ): (...row: Row) => Promise<void>;
  /** Records that a test exercised the rules. Call it at the end of a test, after its assertions. */
  exercised(...rules: readonly RuleId[]): void;
}

/**
 * Records the rules that the tests of a file exercise. After all tests, the file fails if its tests did not
 * exercise every rule that `heldBy` assigns to the file.
 */
export function heldRules(file: string): HeldRules {
  const path = relative(root, file);
  const exercised = new Set<RuleId>();
  const add = (rules: readonly RuleId[]) => {
    for (const rule of rules) exercised.add(rule);
  };
  let tasks: readonly Task[] = [];
  beforeEach(({ task }) => {
    tasks = task.file.tasks;
  });
  afterAll(() => {
    // With a filter on titles, only some of the tests run.
    if (!tasks.every(isRun)) return;
    const own = heldBy.filter(([, holder]) => holder === path).map(([rule]) => rule);
    expect(own.filter((rule) => !exercised.has(rule as RuleId))).toEqual([]);
  });
  return {
    it: (rules, title, body) =>
      it(`${title} (${rules.join(", ")})`, async () => {
        await body();
        add(rules);
      }),
    row:
      (body) =>
      async (...row) => {
        await body(...row);
        add(row[0]);
      },
    exercised: (...rules) => add(rules),
  };
}

interface Task {
  readonly mode: string;
  readonly tasks?: readonly Task[];
}

function isRun({ mode, tasks = [] }: Task): boolean {
  return mode === "run" && tasks.every(isRun);
}
