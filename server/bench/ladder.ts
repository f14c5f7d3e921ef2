import type { Report } from "./report.ts";

/** The limits that 99 of 100 streams of a run must meet. No stream may fail. */
export const bar = { firstAudioMs: 1_000, realTimeFactor: 1 } as const;

export interface Step {
  readonly run: Report;
  readonly holds: boolean;
}

export interface Climb<At extends Step> {
  /** The runs, in ascending order of streams. */
  readonly steps: readonly At[];
  /** The highest number of streams that met the limits, or 0. */
  readonly most: number;
  /** Whether a higher number was measured and did not meet the limits. */
  readonly isBounded: boolean;
}

export function holds({ requests, firstAudioMs, realTimeFactor }: Report): boolean {
  if (requests.failed > 0 || !firstAudioMs || !realTimeFactor) return false;
  return firstAudioMs.p99 <= bar.firstAudioMs && realTimeFactor.p99 <= bar.realTimeFactor;
}

/**
 * Runs each number of streams, and then bisects between the highest number that met the limits and the lowest
 * number that did not, until both numbers differ by at most an eighth.
 * @param rungs the numbers in ascending order.
 * @param runAt runs a number of streams, and returns undefined after an interruption.
 */
export async function climb<At extends Step>(
  rungs: readonly number[],
  runAt: (streams: number) => Promise<At | undefined>,
): Promise<Climb<At>> {
  const steps = new Map<number, At>();
  const step = async (streams: number) => {
    const result = await runAt(streams);
    if (result) steps.set(streams, result);
    return result !== undefined;
  };
  for (const streams of rungs) if (!(await step(streams))) break;
  for (let next = between(steps); next !== undefined; next = between(steps)) if (!(await step(next))) break;
  const { low, high } = edgeOf(steps);
  const inOrder = [...steps].sort(([a], [b]) => a - b).map(([, result]) => result);
  return { steps: inOrder, most: low, isBounded: high !== undefined };
}

/** Returns the lowest number of streams that did not meet the limits, and the highest number below it. */
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
