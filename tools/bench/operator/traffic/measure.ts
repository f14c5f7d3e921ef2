/**
 * Measures an operator with streams in every pool of a fleet: its cost, and the delay of scheduled changes.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { children } from "../../../../config/contract/names.ts";
import type { Issuer } from "../../../../test/support/server/licenses.ts";
import type { AuditLog } from "../audit.ts";
import type { Field, Plot } from "../field.ts";
import { Fleet, ownSecrets } from "../fleet.ts";
import { type Program, Subject } from "../subject.ts";
import type { ApiPods } from "./api-pods.ts";
import { Timeline } from "./timeline.ts";

export interface TrafficPlan {
  readonly size: number;
  /** The length of each window of the cost measurement in seconds. */
  readonly seconds: number;
}

/** The resources that the operator uses in a window of time. */
export interface Cost {
  readonly seconds: number;
  /** The mean number of cores. */
  readonly cores: number;
  readonly mostResidentBytes: number;
  /** The number of writes by resource, without writes of the Lease. */
  readonly writes: Readonly<Record<string, number>>;
  /** The number of reads of single objects, and of lists. */
  readonly reads: number;
  /** The number of load reports with other figures than the previous report. */
  readonly reports: number;
}

export interface TrafficResult {
  readonly plan: TrafficPlan;
  /** The cost while the reported load does not change. */
  readonly still: Cost;
  /** The cost while the streams of every pool change every `reportMs`. */
  readonly traffic: Cost;
  /**
   * The milliseconds from the due time of each canary step until the status shows the step, under traffic.
   */
  readonly stepsLateMs: readonly number[];
  /** The milliseconds from the end of each license until the status shows the end, under traffic. */
  readonly expiriesLateMs: readonly number[];
  /** The number of scheduled changes that did not occur. */
  readonly missing: number;
}

export interface TrafficCourse {
  readonly field: Field;
  readonly plot: Plot;
  readonly program: Program;
  readonly issuer: Issuer;
  readonly apiPods: ApiPods;
  readonly plan: TrafficPlan;
  readonly say: (line: string) => void;
}

/** The interval at which the streams of a pool change. */
export const reportMs = 15_000;
/** The highest number of streams of a pool. One replica can serve more streams, so no pool scales. */
export const mostStreams = 6;
const scaling = { minReplicas: 1, maxReplicas: 2, target: { streamsPerReplica: 8 } };
/** The number of work queue keys of a TtsDeployment and its two pools. */
const keysEach = 3;
const growthStep = 50;
/** The number of TtsDeployments with canaries, and the number of licenses that end. */
const trials = 10;
const pausesSeconds = [15, 15];
const canary = {
  steps: pausesSeconds.map((pauseSeconds, step) => ({ weight: [10, 50][step], pauseSeconds })),
  analysis: { intervalSeconds: 5, minRequests: 0 },
};
const firstExpiryMs = 20_000;
const expiryStepMs = 3_000;
/** The longest wait for late changes. */
const graceMs = 120_000;

/** Measures the operator under traffic. Throws if the fleet does not become ready. */
export async function measureTraffic(course: TrafficCourse): Promise<TrafficResult> {
  const { field, plot, program, issuer, apiPods, plan, say } = course;
  const fleet = new Fleet(field.admin, plot.namespace, issuer, ownSecrets({ scaling }));
  await grow(course, fleet);
  // A new process is measured, as after an upgrade, so that memory from the growth of the fleet does not
  // count.
  const subject = await Subject.start(field, plot, program);
  try {
    await subject.inSync(plan.size * keysEach);
    await untilFollowed(apiPods, plan.size);
    say("the operator reads the load of every API pod");
    const still = await measureCost(course, subject);
    tell(say, "constant load", still);
    apiPods.changeEvery(reportMs);
    // In this pause, the first reports of all pools arrive, and the operator writes the statuses that depend
    // on the reports.
    await sleep(60_000);
    const traffic = await measureCost(course, subject);
    tell(say, "changing load", traffic);
    const times = await measureTimes(course, fleet);
    return { plan, still, traffic, ...times };
  } finally {
    await subject.stop();
  }
}

async function grow({ field, plot, program, plan, say }: TrafficCourse, fleet: Fleet): Promise<void> {
  const grower = await Subject.start(field, plot, program);
  try {
    while (fleet.size < plan.size) {
      await fleet.growTo(Math.min(fleet.size + growthStep, plan.size));
      say(`${fleet.size} TtsDeployments serve`);
    }
  } finally {
    await grower.stop();
  }
}

async function untilFollowed(apiPods: ApiPods, count: number): Promise<void> {
  const deadline = Date.now() + graceMs;
  while (apiPods.followed < count) {
    if (Date.now() > deadline)
      throw new Error(`the operator reads the load of only ${apiPods.followed} of ${count} API pods`);
    await sleep(250);
  }
}

async function measureCost(
  { field, plot, apiPods, plan, say }: TrafficCourse,
  subject: Subject,
): Promise<Cost> {
  for (const _earlier of field.audit.news());
  const [startedMs, processor, reports] = [performance.now(), subject.processorSeconds(), apiPods.changes];
  let mostResidentBytes = 0;
  for (let second = 0; second < plan.seconds; second += 1) {
    await sleep(1_000);
    mostResidentBytes = Math.max(mostResidentBytes, subject.residentBytes());
    if (second % 60 === 59) say(`${plan.seconds - second - 1} s to go`);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  return {
    seconds,
    cores: (subject.processorSeconds() - processor) / seconds,
    mostResidentBytes,
    ...requestsOf(field.audit, plot.user),
    reports: apiPods.changes - reports,
  };
}

function requestsOf(audit: AuditLog, user: string): Pick<Cost, "writes" | "reads"> {
  const writes: Record<string, number> = {};
  let reads = 0;
  for (const { user: requester, verb, resource } of audit.news()) {
    if (requester !== user || resource === "leases" || verb === "watch") continue;
    if (verb === "get" || verb === "list") reads += 1;
    else writes[resource] = (writes[resource] ?? 0) + 1;
  }
  return { writes, reads };
}

function tell(say: (line: string) => void, what: string, cost: Cost): void {
  say(
    `${what}: ${cost.cores.toFixed(2)} cores, ${(cost.mostResidentBytes / 2 ** 20).toFixed(0)} MiB, ${writesPerSecond(cost).toFixed(1)} writes/s`,
  );
}

export function writesPerSecond({ writes, seconds }: Cost): number {
  return Object.values(writes).reduce((sum, count) => sum + count, 0) / seconds;
}

/**
 * Measures the delay of canary steps and license expiries of different TtsDeployments, all at the same time
 * and while the load changes.
 */
async function measureTimes(
  { field, plot, plan, say }: TrafficCourse,
  fleet: Fleet,
): Promise<Pick<TrafficResult, "stepsLateMs" | "expiriesLateMs" | "missing">> {
  await using timeline = await Timeline.start(field.admin, plot.namespace);
  const count = Math.min(trials, Math.floor(plan.size / 2));
  const each = Array.from({ length: count }, (_, index) => index);
  say(`${count} canaries and ${count} licenses that end`);
  const pools: string[] = [];
  for (const index of each) {
    const name = await fleet.tryCanary(index, 1, canary);
    pools.push(...["mist", "arcana"].map((pool) => children.pool(name, pool)));
  }
  const ends = new Map<string, number>();
  for (const index of each) {
    const endsMs = Math.ceil((Date.now() + firstExpiryMs) / 1000) * 1000 + index * expiryStepMs;
    ends.set(await fleet.limitLicense(plan.size - 1 - index, endsMs), endsMs);
  }
  const steps = () => pools.flatMap((pool) => timeline.stepsLateMs(pool, pausesSeconds));
  const expiries = () =>
    [...ends].flatMap(([name, endsMs]) => {
      const seenMs = timeline.licenseEndedMs(name);
      return seenMs === undefined ? [] : [seenMs - endsMs];
    });
  const expected = pools.length * pausesSeconds.length + count;
  const longestMs = pausesSeconds.reduce(
    (sum, seconds) => sum + seconds * 1000,
    firstExpiryMs + count * expiryStepMs,
  );
  const deadline = Date.now() + longestMs + graceMs;
  while (steps().length + expiries().length < expected && Date.now() < deadline) await sleep(500);
  const rolledBack = pools.filter((pool) => timeline.wasRolledBack(pool));
  if (rolledBack.length > 0) say(`rolled back: ${rolledBack.join(", ")}`);
  const found = { stepsLateMs: steps(), expiriesLateMs: expiries() };
  return { ...found, missing: expected - found.stepsLateMs.length - found.expiriesLateMs.length };
}
