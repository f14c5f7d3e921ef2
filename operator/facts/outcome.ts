/**
 * How a pass ends. A surprise is no outcome: it throws, and the queue tries again with growing delays.
 * - `settled`: the cluster is as it should be; only a change wakes the key again.
 * - `waiting`: something outside has to happen (a pod to start, a date to pass); look again after `afterMs` at the latest.
 * - `stalled`: nothing will get better until a person changes something. `afterMs` is set when something else changes by itself then (a license
 *   ends, a token is rotated).
 */
export type ReconcileOutcome =
  | { kind: "settled" }
  | { kind: "waiting"; afterMs: number; reason: string }
  | { kind: "stalled"; reason: string; afterMs?: number };
