/** An operator with a fleet whose pools all have streams: its cost, and the delay of scheduled changes. */
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
  /** Length of each window of the cost measurement. */
  readonly seconds: number;
}

/** Resources of the operator in a window of time. */
export interface Cost {
  readonly seconds: number;
  /** Share of one core. */
  readonly cores: number;
  readonly mostResidentBytes: number;
  /** Writes by resource, without those of the Lease. */
  readonly writes: Readonly<Record<string, number>>;
  /** Single objects and lists. */
  readonly reads: number;
  /** Load reports whose figures differ from the previous one. */
  readonly reports: number;
}

export interface TrafficResult {
  readonly plan: TrafficPlan;
  /** Load is reported, but does not change. */
  readonly still: Cost;
  /** Every pool's streams change every `reportMs`. */
  readonly traffic: Cost;
  /** Milliseconds from a canary step's due time to its state in the status, under traffic. */
  readonly stepsLateMs: readonly number[];
  /** Milliseconds from the end of a license to its state in the status, under traffic. */
  readonly expiriesLateMs: readonly number[];
  /** Changes that were started and not observed. */
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

/** How often the streams of a pool change. */
export const reportMs = 15_000;
/** One replica supports more streams than ever exist, so no pool scales. */
export const mostStreams = 6;
const scaling = { minReplicas: 1, maxReplicas: 2, target: { streamsPerReplica: 8 } };
/** Reconciles of a TtsDeployment and its two pools. */
const keysEach = 3;
const growthStep = 50;
/** Number of canaries and of licenses that end. */
const trials = 10;
const pausesSeconds = [15, 15];
const canary = {
  steps: pausesSeconds.map((pauseSeconds, step) => ({ weight: [10, 50][step], pauseSeconds })),
  analysis: { intervalSeconds: 5, minRequests: 0 },
};
const firstExpiryMs = 20_000;
const expiryStepMs = 3_000;
/** Wait for late changes: longer than any of them is expected to take. */
const graceMs = 120_000;

/** @throws Error if the fleet does not become ready */
export async function measureTraffic(course: TrafficCourse): Promise<TrafficResult> {
  const { field, plot, program, issuer, apiPods, plan, say } = course;
  const fleet = new Fleet(field.admin, plot.namespace, issuer, ownSecrets({ scaling }));
  await grow(course, fleet);
  // A fresh process, as after an upgrade, so that memory from the growth of the fleet is not measured.
  const subject = await Subject.start(field, plot, program);
  try {
    await subject.inSync(plan.size * keysEach);
    await untilFollowed(apiPods, plan.size);
    say("every API pod is followed");
    const still = await measureCost(course, subject);
    tell(say, "constant load", still);
    apiPods.changeEvery(reportMs);
    // The first reports of all pools, and the statuses that follow from them.
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
  const gardener = await Subject.start(field, plot, program);
  try {
    while (fleet.size < plan.size) {
      await fleet.growTo(Math.min(fleet.size + growthStep, plan.size));
      say(`${fleet.size} TtsDeployments serve`);
    }
  } finally {
    await gardener.stop();
  }
}

async function untilFollowed(apiPods: ApiPods, count: number): Promise<void> {
  const deadline = Date.now() + graceMs;
  while (apiPods.followed < count) {
    if (Date.now() > deadline) throw new Error(`${apiPods.followed} of ${count} API pods are followed`);
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
  for (const { user: who, verb, resource } of audit.news()) {
    if (who !== user || resource === "leases" || verb === "watch") continue;
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
 * Canaries and licenses of different TtsDeployments, all in progress at once, while the load continues to
 * change.
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
  const wanted = pools.length * pausesSeconds.length + count;
  const longestMs = pausesSeconds.reduce(
    (sum, seconds) => sum + seconds * 1000,
    firstExpiryMs + count * expiryStepMs,
  );
  const deadline = Date.now() + longestMs + graceMs;
  while (steps().length + expiries().length < wanted && Date.now() < deadline) await sleep(500);
  const rolledBack = pools.filter((pool) => timeline.wasRolledBack(pool));
  if (rolledBack.length > 0) say(`rolled back: ${rolledBack.join(", ")}`);
  const found = { stepsLateMs: steps(), expiriesLateMs: expiries() };
  return { ...found, missing: wanted - found.stepsLateMs.length - found.expiriesLateMs.length };
}
