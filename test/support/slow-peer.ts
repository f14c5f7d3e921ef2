/**
 * Time as a fake peer spends it: a caller that sips, a server that answers late, an engine that writes slowly. This is
 * behaviour that a test needs, and never how a test waits: tests wait by `eventually`.
 */
import { setTimeout as delay } from "node:timers/promises";

/** The peer does something once, later. The returned function calls it off. */
export function answerAfter(delayMs: number, answer: () => void): () => void {
  const timer = setTimeout(answer, delayMs).unref();
  return () => clearTimeout(timer);
}

/** The peer does something again and again. The returned function ends it. */
export function sendEvery(intervalMs: number, send: () => void): () => void {
  const timer = setInterval(send, intervalMs).unref();
  return () => clearInterval(timer);
}

/** A pause inside a peer that is written as an async function or generator. */
export async function pauseOfPeer(delayMs: number, signal?: AbortSignal): Promise<void> {
  await delay(delayMs, undefined, signal && { signal });
}
