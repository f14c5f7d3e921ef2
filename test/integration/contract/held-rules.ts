import { relative } from "node:path";
import { afterAll, beforeEach, expect, it } from "vitest";
import { heldBy, type RuleId } from "./rules.ts";

const root = new URL("../../..", import.meta.url).pathname;

export interface HeldRules {
  /** A test with its rules in the title. */
  it(rules: readonly RuleId[], says: string, body: () => Promise<void>): void;
  /** The body of a test on a table whose rows begin with their rules. */
  row<Row extends readonly [readonly RuleId[], ...unknown[]]>(
    body: (...row: Row) => Promise<void>,
  ): (...row: Row) => Promise<void>;
  /** Records the rules. Called at the end of a test, when its assertions have passed. */
  exercised(...rules: readonly RuleId[]): void;
}

/**
 * Records the rules that the tests of a file exercise. After all tests, it fails unless they exercised every
 * rule that `heldBy` assigns to this file.
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
    // a filter on titles runs only some of the tests
    if (!tasks.every(isRun)) return;
    const own = heldBy.filter(([, holder]) => holder === path).map(([rule]) => rule);
    expect(own.filter((rule) => !exercised.has(rule as RuleId))).toEqual([]);
  });
  return {
    it: (rules, says, body) =>
      it(`${says} (${rules.join(", ")})`, async () => {
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
