/**
 * The result of a reconcile. After an unexpected error, the reconcile throws, and the work queue retries the
 * key with backoff.
 * - `settled`: the cluster matches the spec. Only a change starts another reconcile.
 * - `waiting`: the reconcile waits for a state that no watch reports, or for a time. The key is requeued
 * after `afterMs`.
 * - `stalled`: a user must act. `afterMs` is set if the key must be reconciled at that time for another
 * reason, for example because a license expires.
 */
export type ReconcileOutcome =
  | { kind: "settled" }
  | { kind: "waiting"; afterMs: number; reason: string }
  | { kind: "stalled"; reason: string; afterMs?: number };
