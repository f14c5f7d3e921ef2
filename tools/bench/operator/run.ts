/**
 * The run of the benchmark: two fleets grow in parallel in one cluster, and each fleet has its own operator.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Issuer } from "../../../test/support/server/licenses.ts";
import type { Field, Plot } from "./field.ts";
import { Fleet } from "./fleet.ts";
import { Stopwatch } from "./latency.ts";
import { compareChildren } from "./likeness.ts";
import type { BenchmarkPlan } from "./plan.ts";
import { countRequests } from "./rest.ts";
import type { OperatorMeasurement } from "./results.ts";
import { type Program, Subject } from "./subject.ts";

export interface Contender {
  readonly program: Program;
  readonly plot: Plot;
}

/** The dependencies of a run, and the function that receives its results. */
export interface Course {
  readonly field: Field;
  readonly issuer: Issuer;
  readonly plan: BenchmarkPlan;
  readonly tell: (finding: OperatorMeasurement) => void;
  readonly say: (line: string) => void;
}

/**
 * The shares of the time limit at which growth and changes end. The remaining time is for the measurement at
 * rest.
 */
const growthShare = 0.6;
const changesShare = 0.75;
/** The number of TtsDeployments that are created at once. */
const growthStep = 50;
/** The pause between two changes, in which pods start and stop. */
export const changePauseMs = 400;
/** The number of work queue keys of a TtsDeployment and its two pools. */
const keysEach = 3;

interface Lane {
  readonly program: Program;
  readonly plot: Plot;
  readonly fleet: Fleet;
}

/**
 * Measures both operators. Throws if an operator does not finish in time. Earlier results are already
 * reported.
 */
export async function measureOperators(course: Course, contenders: readonly Contender[]): Promise<void> {
  const { field, issuer, plan, tell, say } = course;
  const startedMs = performance.now();
  const dueMs = (share: number) => startedMs + share * plan.minutes * 60_000;
  const lanes: Lane[] = [];
  for (const { program, plot } of contenders) {
    lanes.push({ program, plot, fleet: new Fleet(field.admin, plot.namespace, issuer) });
  }
  for (const size of plan.sizes) {
    const reached = await grow(course, lanes, size, dueMs(growthShare));
    for (const lane of lanes) await measureStart(course, lane);
    if (reached === size) continue;
    say(`the time limit for growth is reached: ${reached} TtsDeployments each, not ${plan.sizes.at(-1)}`);
    break;
  }
  tell({ kind: "likeness", likeness: await compareChildren(field.admin, "tts-0000") });
  const running: Subject[] = [];
  try {
    for (const { plot, program } of lanes) running.push(await Subject.start(field, plot, program));
    await Promise.all(running.map((subject, i) => subject.inSync((lanes[i]?.fleet.size ?? 0) * keysEach)));
    await measureLatency(course, lanes, dueMs(changesShare));
    await measureRest(course, lanes, running);
    for (const i of lanes.keys()) await measureFailover(course, lanes, running, i);
  } finally {
    for (const subject of running) await subject.stop();
  }
}

/**
 * Grows all fleets in parallel to this size, or until the time limit is reached. Returns the reached size.
 */
async function grow(
  { field, say }: Course,
  lanes: readonly Lane[],
  size: number,
  dueMs: number,
): Promise<number> {
  const growers: Subject[] = [];
  try {
    for (const { plot, program } of lanes) growers.push(await Subject.start(field, plot, program));
    let reached = lanes[0]?.fleet.size ?? 0;
    while (reached < size && (reached === 0 || performance.now() < dueMs)) {
      reached = Math.min(reached + growthStep, size);
      await Promise.all(lanes.map(({ fleet }) => fleet.growTo(reached)));
      say(`${reached} TtsDeployments each serve`);
    }
    await Promise.all(growers.map((grower) => grower.untilResting()));
    return reached;
  } finally {
    for (const grower of growers) await grower.stop();
  }
}

/** Measures a start of the operator with an existing fleet. */
async function measureStart({ field, tell, say }: Course, { program, plot, fleet }: Lane): Promise<void> {
  await using fresh = stopping(await Subject.start(field, plot, program));
  const { size } = fleet;
  const syncMs = await fresh.subject.inSync(size * keysEach);
  const processorSeconds = fresh.subject.processorSeconds();
  const residentBytes = fresh.subject.residentBytes();
  tell({ kind: "size", name: program.name, size, syncMs, processorSeconds, residentBytes });
  say(
    `${program.name}: ${size} in sync after ${(syncMs / 1000).toFixed(1)} s, ${processorSeconds.toFixed(1)} s of CPU time, ${mebibytes(residentBytes)} MiB`,
  );
}

/**
 * Changes the fleets in turn, so that other load of the machine affects both operators equally. The next
 * change begins after the children of the last change are written.
 */
async function measureLatency(
  { field, plan, tell, say }: Course,
  lanes: readonly Lane[],
  dueMs: number,
): Promise<void> {
  const watch = new Stopwatch(field.audit);
  const startedMs = performance.now();
  let change = 0;
  for (; change < plan.changes && (change === 0 || performance.now() < dueMs); change++) {
    for (const lane of lanes) {
      const latencyMs = await watch.change(lane, change, versionOf(change, lane));
      tell({ kind: "change", name: lane.program.name, latencyMs });
      await sleep(changePauseMs);
    }
    if ((change + 1) % 20 === 0) say(`${change + 1} of ${plan.changes} changes of a spec`);
  }
  tell({
    kind: "changes",
    perSecond: (change * lanes.length * 1000) / (performance.now() - startedMs),
  });
  for (const { fleet } of lanes) await fleet.untilReady();
}

/** Returns the version of the image. Every change of a TtsDeployment uses a new image. */
function versionOf(change: number, { fleet }: Lane): number {
  return 1 + Math.floor(change / fleet.size);
}

async function measureRest(
  { field, plan, tell, say }: Course,
  lanes: readonly Lane[],
  running: readonly Subject[],
): Promise<void> {
  const seconds = plan.restSeconds;
  // The pause excludes the effects of the last change, including events, from the measurement.
  await sleep(10_000);
  for (const _earlier of field.audit.news());
  for (let left = seconds; left > 0; left -= 30) {
    say(`at rest: ${left} s to go`);
    await sleep(Math.min(left, 30) * 1000);
  }
  const rests = countRequests(
    field.audit,
    lanes.map(({ plot }) => plot),
    seconds,
  );
  for (const [i, { program }] of lanes.entries()) {
    const [rest, subject] = [rests[i], running[i]];
    if (rest && subject)
      tell({ kind: "rest", name: program.name, rest, residentBytes: subject.residentBytes() });
  }
}

/**
 * Kills the leader, and changes a spec at the same time. Measures the time until the standby has written the
 * children.
 */
async function measureFailover(
  { field, plan, tell, say }: Course,
  lanes: readonly Lane[],
  running: Subject[],
  index: number,
): Promise<void> {
  const [lane, leader] = [lanes[index], running[index]];
  if (lane === undefined || leader === undefined) throw new RangeError(`no operator ${index}`);
  const standby = await Subject.start(field, lane.plot, lane.program);
  running[index] = standby;
  try {
    await standby.untilResting();
  } finally {
    await leader.stop("SIGKILL");
  }
  const failoverMs = await new Stopwatch(field.audit).change(lane, 0, versionOf(plan.changes, lane) + 1);
  tell({ kind: "failover", name: lane.program.name, failoverMs });
  say(`${lane.program.name}: failover ${(failoverMs / 1000).toFixed(1)} s`);
}

function stopping(subject: Subject): AsyncDisposable & { readonly subject: Subject } {
  return { subject, [Symbol.asyncDispose]: () => subject.stop() };
}

export function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}
