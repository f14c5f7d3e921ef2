import { setTimeout as sleep } from "node:timers/promises";

/**
 * Asks at a steady pace, whether earlier answers are there or not; resolves with all of them.
 * @param perSecond of the asking. @param seconds for which it goes on.
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
