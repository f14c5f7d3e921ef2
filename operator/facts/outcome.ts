/**
 * The result of a reconcile. Unexpected errors are thrown instead, and the queue retries the key with backoff.
 * - `settled`: the cluster matches the spec. Only a change starts another reconcile.
 * - `waiting`: the reconcile depends on an event outside (a pod starts, a date passes). The key is requeued after `afterMs`.
 * - `stalled`: a person has to act. `afterMs` is set if something else changes at that time (a license expires, a token is
 *   rotated).
 */
export type ReconcileOutcome =
  | { kind: "settled" }
  | { kind: "waiting"; afterMs: number; reason: string }
  | { kind: "stalled"; reason: string; afterMs?: number };
