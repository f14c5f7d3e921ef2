import { setTimeout as sleep } from "node:timers/promises";

/**
 * Sends requests at a constant rate, independent of the duration of earlier requests. Resolves with all
 * responses. `seconds` is the duration of the load.
 */
export async function openLoop<Result>(
  perSecond: number,
  seconds: number,
  send: () => Promise<Result>,
): Promise<Result[]> {
  const responses: Promise<Result>[] = [];
  const total = Math.round(perSecond * seconds);
  const startedAt = performance.now();
  while (responses.length < total) {
    const due = Math.floor(((performance.now() - startedAt) / 1000) * perSecond) + 1;
    while (responses.length < Math.min(due, total)) responses.push(send());
    await sleep(1);
  }
  return Promise.all(responses);
}
