import { setTimeout as sleep } from "node:timers/promises";

/**
 * Sends requests at a constant rate, independent of the duration of earlier requests. Resolves with all
 * responses. `seconds` is the duration of the load.
 */
export async function openLoop<Answer>(
  perSecond: number,
  seconds: number,
  ask: () => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Promise<Answer>[] = [];
  const total = Math.round(perSecond * seconds);
  const startedAt = performance.now();
  while (answers.length < total) {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond) + 1;
    while (answers.length < Math.min(due, total)) answers.push(ask());
    await sleep(1);
  }
  return Promise.all(answers);
}
