/** Conditions for continuing a held request (`hold` of the fault proxy). */
import { eventually } from "../eventually.ts";
import type { OperatorHouse } from "./operator-house.ts";

/** Waits until no operator's watch shows the object any more. */
export async function untilForgotten(house: OperatorHouse, kind: string, name: string): Promise<void> {
  const key = `${house.namespace}/${name}`;
  await eventually(`the operators to forget ${kind} ${key}`, () =>
    house.activities.every(({ watches }) =>
      watches.every((watch) => watch.kind !== kind || !watch.versions.has(key)),
    ),
  );
}

/**
 * Moves the clock of an operator whose only request in progress is held, and waits until every reconcile that may run concurrently has
 * run. Each round covers the timers that a reconcile of the previous round has set.
 */
export async function passBesideHeld(house: OperatorHouse, rounds: number, stepMs: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await house.clock.advance(stepMs);
    await eventually("nothing to be left but the held request", () =>
      house.activities.every(({ queue, requests }) => queue.running === 1 && requests === 1),
    );
  }
}
