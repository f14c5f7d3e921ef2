import type { Pace, ScalingPolicy, ScalingRule } from "../desired/scaling-rule.ts";

/**
 * Decides the number of replicas of a pool, by the rules of HorizontalPodAutoscaler ("Configurable scaling
 * behavior"). The functions are pure: time, load and earlier decisions are arguments. Missing load reports
 * never cause a scale-down.
 */

/** The total demand for a pool, from all API pods that report their load. */
export interface Demand {
  /** Streams that are in progress, queued, or held until a replica is ready. */
  readonly streams: number;
  readonly firstAudioMs: number | undefined;
  /** Whether every API pod reports its load. If it is false, the pool may have more streams. */
  readonly complete: boolean;
}

export interface ScalingFacts {
  /** Monotonic time in milliseconds. */
  readonly nowMs: number;
  readonly current: number;
  readonly ready: number;
  readonly demand: Demand;
  /** The number of replicas that the license allows. */
  readonly licensed: number;
}

/** The state that is kept between two decisions. */
export interface ScalingHistory {
  /** The number of replicas that the load needed at the last decision. */
  readonly last: number;
  /**
   * Earlier recommendations that still prevent a scale-down, in descending order. `untilMs` is the time at
   * which a recommendation last applied.
   */
  readonly peaks: readonly Recommendation[];
  /** Earlier recommendations that still prevent a scale-up, in ascending order. */
  readonly lows: readonly Recommendation[];
  readonly changes: readonly Change[];
}

interface Recommendation {
  readonly replicas: number;
  readonly untilMs: number;
}

interface Change {
  readonly atMs: number;
  readonly by: number;
}

export interface ScalingDecision {
  readonly replicas: number;
  readonly kind: "following" | "atMost" | "licenseHolds" | "loadUnknown";
  /** Milliseconds until the decision may change even if the load does not change. */
  readonly lookAgainMs: number | undefined;
  readonly memory: ScalingHistory;
}

/**
 * The tolerated ratio of latency and target. As with HorizontalPodAutoscaler, a deviation of up to 10 %
 * causes no change.
 */
const tolerance = 1.1;
/** The number of changes of the replicas that are kept. A policy period usually has fewer changes. */
const mostChanges = 256;

/** Returns the history at the start. The current number of replicas counts as the last decision. */
export function firstMemory(current: number, nowMs: number): ScalingHistory {
  const recommended = [{ replicas: current, untilMs: nowMs }];
  return { last: current, peaks: recommended, lows: recommended, changes: [] };
}

export function decide(rule: ScalingRule, facts: ScalingFacts, before: ScalingHistory): ScalingDecision {
  const { nowMs, current, demand } = facts;
  const needed = neededReplicas(rule, facts);
  const recommended = Math.min(rule.most, Math.max(rule.fewest, needed));
  const peaks = remember(before.peaks, before.last, recommended, nowMs, rule.down.windowMs, (a, b) => a <= b);
  const lows = remember(before.lows, before.last, recommended, nowMs, rule.up.windowMs, (a, b) => a >= b);
  const least = lows[0]?.replicas ?? recommended;
  const greatest = peaks[0]?.replicas ?? recommended;
  const steady = Math.max(least, Math.min(current, greatest));
  const paced = pace(rule, steady, current, before.changes, nowMs);
  const allowed = Math.min(rule.most, Math.max(rule.fewest, paced));
  const replicas = allowed > current ? Math.max(current, Math.min(allowed, facts.licensed)) : allowed;
  return {
    replicas,
    kind: decisionKind(demand, replicas < allowed, needed > rule.most),
    lookAgainMs: soonest([
      greatest > recommended ? (peaks[0]?.untilMs ?? nowMs) + rule.down.windowMs - nowMs : undefined,
      least < recommended ? (lows[0]?.untilMs ?? nowMs) + rule.up.windowMs - nowMs : undefined,
      paced === steady ? undefined : nextRoomMs(rule, before.changes, nowMs),
    ]),
    memory: { last: recommended, peaks, lows, changes: before.changes },
  };
}

/** Returns the history with a change of the replicas that was written. */
export function changed(memory: ScalingHistory, by: number, nowMs: number): ScalingHistory {
  return { ...memory, changes: [...memory.changes, { atMs: nowMs, by }].slice(-mostChanges) };
}

function decisionKind(demand: Demand, isHeld: boolean, isTooMuch: boolean): ScalingDecision["kind"] {
  if (!demand.complete) return "loadUnknown";
  if (isHeld) return "licenseHolds";
  return isTooMuch ? "atMost" : "following";
}

/** Returns the number of replicas that the current load needs. */
function neededReplicas(rule: ScalingRule, { current, ready, demand }: ScalingFacts): number {
  const byStreams = Math.ceil(demand.streams / rule.streamsPerReplica);
  const needed = Math.max(byStreams, byLatency(rule, current, ready, demand));
  return demand.complete ? needed : Math.max(needed, current);
}

/**
 * Returns the number of replicas for the latency target. It is at most twice the current number, and
 * increases only when all current replicas are ready.
 */
function byLatency(
  { initialLatencyMs }: ScalingRule,
  current: number,
  ready: number,
  { streams, firstAudioMs }: Demand,
): number {
  if (initialLatencyMs === undefined || firstAudioMs === undefined || streams === 0) return 0;
  const ratio = firstAudioMs / initialLatencyMs;
  if (ratio <= tolerance) return ratio > 1 / tolerance ? current : 0;
  return ready < current ? current : Math.min(2 * current, Math.ceil(current * ratio));
}

/**
 * Returns the recommendations within the window that can still limit a decision. The last recommendation
 * applied until now. A new recommendation replaces every earlier recommendation that can no longer limit a
 * decision, so the list stays ordered.
 */
function remember(
  list: readonly Recommendation[],
  last: number,
  recommended: number,
  nowMs: number,
  windowMs: number,
  isExceeded: (known: number, by: number) => boolean,
): Recommendation[] {
  const recent = list.filter(
    ({ untilMs, replicas }) => untilMs > nowMs - windowMs && !isExceeded(replicas, last),
  );
  if (windowMs > 0) recent.push({ replicas: last, untilMs: nowMs });
  return [
    ...recent.filter(({ replicas }) => !isExceeded(replicas, recommended)),
    { replicas: recommended, untilMs: nowMs },
  ];
}

function pace(
  rule: ScalingRule,
  steady: number,
  current: number,
  changes: readonly Change[],
  nowMs: number,
): number {
  if (steady > current) {
    // At zero replicas, one replica may always start. A percentage policy would otherwise allow no replica,
    // because a percentage of zero is zero.
    const limit = limitOf(rule.up, current, changes, nowMs, growth);
    return Math.min(steady, Math.max(limit, current === 0 && rule.up.select !== "Disabled" ? 1 : current));
  }
  if (steady < current)
    return Math.max(steady, Math.min(limitOf(rule.down, current, changes, nowMs, decline), current));
  return steady;
}

interface Bound {
  readonly free: number;
  by(start: number, policy: ScalingPolicy): number;
  /** Selects the limit that allows the largest change. */
  most(bounds: readonly number[]): number;
  least(bounds: readonly number[]): number;
}

const growth: Bound = {
  free: Number.POSITIVE_INFINITY,
  by: (start, { type, value }) => (type === "Pods" ? start + value : Math.ceil(start * (1 + value / 100))),
  most: (bounds) => Math.max(...bounds),
  least: (bounds) => Math.min(...bounds),
};

const decline: Bound = {
  free: 0,
  by: (start, { type, value }) => (type === "Pods" ? start - value : Math.floor(start * (1 - value / 100))),
  most: (bounds) => Math.min(...bounds),
  least: (bounds) => Math.max(...bounds),
};

function limitOf(
  { select, policies }: Pace,
  current: number,
  changes: readonly Change[],
  nowMs: number,
  bound: Bound,
): number {
  if (select === "Disabled") return current;
  if (policies.length === 0) return bound.free;
  const bounds = policies.map((policy) => {
    const since = nowMs - 1000 * policy.periodSeconds;
    const by = changes.filter(({ atMs }) => atMs > since).reduce((sum, change) => sum + change.by, 0);
    return bound.by(current - by, policy);
  });
  return select === "Max" ? bound.most(bounds) : bound.least(bounds);
}

/** Returns the milliseconds until the next change no longer counts in the period of a policy. */
function nextRoomMs(rule: ScalingRule, changes: readonly Change[], nowMs: number): number | undefined {
  const policies = [...rule.up.policies, ...rule.down.policies];
  const times = changes.flatMap(({ atMs }) =>
    policies.map(({ periodSeconds }) => atMs + 1000 * periodSeconds - nowMs),
  );
  return soonest(times.filter((time) => time > 0));
}

function soonest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.max(1, Math.min(...known));
}
