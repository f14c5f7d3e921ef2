import type { Report } from "./report.ts";

/** Limits up to which a run's streams count as served: 99 of 100 streams meet them, and none fails. */
export const bar = { firstAudioMs: 1_000, realTimeFactor: 1 } as const;

export interface Step {
  readonly run: Report;
  readonly holds: boolean;
}

export interface Climb<At extends Step> {
  /** In ascending order of streams. */
  readonly steps: readonly At[];
  /** Highest number of streams that met the limits, or 0. */
  readonly most: number;
  /** Whether a higher number was tried and did not meet the limits. */
  readonly isBounded: boolean;
}

export function holds({ requests, firstAudioMs, realTimeFactor }: Report): boolean {
  if (requests.failed > 0 || !firstAudioMs || !realTimeFactor) return false;
  return firstAudioMs.p99 <= bar.firstAudioMs && realTimeFactor.p99 <= bar.realTimeFactor;
}

/**
 * Runs each number of streams, then bisects between the last that met the limits and the first that did not,
 * down to an eighth.
 * @param rungs ascending. @param runAt returns undefined after it was stopped.
 */
export async function climb<At extends Step>(
  rungs: readonly number[],
  runAt: (streams: number) => Promise<At | undefined>,
): Promise<Climb<At>> {
  const steps = new Map<number, At>();
  const step = async (streams: number) => {
    const done = await runAt(streams);
    if (done) steps.set(streams, done);
    return done !== undefined;
  };
  for (const streams of rungs) if (!(await step(streams))) break;
  for (let next = between(steps); next !== undefined; next = between(steps)) if (!(await step(next))) break;
  const { low, high } = edgeOf(steps);
  const inOrder = [...steps].sort(([a], [b]) => a - b).map(([, done]) => done);
  return { steps: inOrder, most: low, isBounded: high !== undefined };
}

/** The highest number below the first failure that met the limits. */
function edgeOf(steps: ReadonlyMap<number, Step>): { low: number; high: number | undefined } {
  const streams = [...steps.keys()].sort((a, b) => a - b);
  const high = streams.find((count) => !steps.get(count)?.holds);
  const low = streams.findLast((count) => high === undefined || count < high) ?? 0;
  return { low, high };
}

function between(steps: ReadonlyMap<number, Step>): number | undefined {
  const { low, high } = edgeOf(steps);
  if (high === undefined || high - low <= Math.max(1, low / 8)) return undefined;
  return Math.floor((low + high) / 2);
}
