/** Waits for states in which a test releases a held request (the fault `hold` of the proxy). */
import { eventually } from "../eventually.ts";
import type { OperatorHouse } from "./operator-house.ts";

/** Waits until the watches of all operators have reported the deletion of an object. */
export async function untilForgotten(house: OperatorHouse, kind: string, name: string): Promise<void> {
  const key = `${house.namespace}/${name}`;
  await eventually(`the operators have no ${kind} ${key}`, () =>
    house.activities.every(({ watches }) =>
      watches.every((watch) => watch.kind !== kind || !watch.versions.has(key)),
    ),
  );
}

/**
 * Advances the clock while the only request in progress is held, and waits until all concurrent reconciles
 * have ended. Each round covers the timers that the reconciles of the previous round have set.
 */
export async function passBesideHeld(house: OperatorHouse, rounds: number, stepMs: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await house.clock.advance(stepMs);
    await eventually("only the held request is in progress", () =>
      house.activities.every(({ queue, requests }) => queue.running === 1 && requests === 1),
    );
  }
}
