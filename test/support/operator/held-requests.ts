/** Facts by which a test decides when a request that it holds back (`hold` of the fault proxy) may go on. */
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
 * Lets time pass for an operator whose only request under way is held back, and waits until every pass that may run beside
 * the held one has run. Each round is for what a pass of the round before has put on its clock.
 */
export async function passBesideHeld(house: OperatorHouse, rounds: number, stepMs: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await house.clock.advance(stepMs);
    await eventually("nothing to be left but the held request", () =>
      house.activities.every(({ queue, requests }) => queue.running === 1 && requests === 1),
    );
  }
}
