/** The whole run: two fleets that grow side by side, each with its operator, in one cluster. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Issuer } from "../../support/licenses.ts";
import type { Field, Plot } from "./field.ts";
import { Fleet } from "./fleet.ts";
import { Stopwatch } from "./latency.ts";
import { compareChildren, type Likeness } from "./likeness.ts";
import { countRequests, type Rest } from "./rest.ts";
import { type Program, Subject } from "./subject.ts";

export interface Plan {
  /** TtsDeployments, ascending; the last is where everything else is measured. */
  readonly sizes: readonly number[];
  /** Changes of a spec for each operator. */
  readonly changes: number;
  readonly restSeconds: number;
}

export interface SizeFigures {
  readonly size: number;
  readonly syncMs: number;
  /** From its start until it was in sync. */
  readonly processorSeconds: number;
  readonly residentBytes: number;
}

export interface Figures {
  readonly name: string;
  readonly sizes: readonly SizeFigures[];
  readonly latenciesMs: readonly number[];
  readonly rest: Rest;
  /** At the end of the rest. */
  readonly residentBytes: number;
  readonly failoverMs: number;
}

export interface Contender {
  readonly program: Program;
  readonly plot: Plot;
}

export interface Result {
  readonly contenders: readonly Figures[];
  readonly likeness: Likeness;
}

/** Between changes: their pods come and go meanwhile. */
const changeEveryMs = 400;
/** Passes over a TtsDeployment and its two pools. */
const keysEach = 3;

interface Lane {
  readonly program: Program;
  readonly plot: Plot;
  readonly fleet: Fleet;
  readonly sizes: SizeFigures[];
  readonly latenciesMs: number[];
}

/** @throws Error where an operator does not get there in time */
export async function measureOperators(
  field: Field,
  contenders: readonly Contender[],
  issuer: Issuer,
  plan: Plan,
  say: (line: string) => void,
): Promise<Result> {
  const lanes: Lane[] = [];
  for (const { program, plot } of contenders) {
    const fleet = new Fleet(field.admin, plot.namespace, say);
    await fleet.open(issuer);
    lanes.push({ program, plot, fleet, sizes: [], latenciesMs: [] });
  }
  for (const size of plan.sizes)
    for (const lane of lanes) lane.sizes.push(await measureSize(field, lane, size, say));
  const likeness = await compareChildren(field.admin, "tts-0000");
  const running: Subject[] = [];
  try {
    for (const { plot, program } of lanes) running.push(await Subject.start(field, plot, program));
    await Promise.all(running.map((subject) => subject.inSync(plan.sizes.at(-1) ?? 0)));
    await measureLatency(field, lanes, plan.changes, say);
    const { rests, residentBytes } = await measureRest(field, lanes, running, plan.restSeconds, say);
    const figures: Figures[] = [];
    for (const [i, { program, sizes, latenciesMs }] of lanes.entries()) {
      const failoverMs = await measureFailover(field, lanes, running, i, plan.changes + 1, say);
      const rest = rests[i] as Rest;
      figures.push({
        name: program.name,
        sizes,
        latenciesMs,
        rest,
        residentBytes: residentBytes[i] ?? 0,
        failoverMs,
      });
    }
    return { contenders: figures, likeness };
  } finally {
    for (const subject of running) await subject.stop();
  }
}

/** Grows the fleet under its operator; then that one is started anew on what is there. */
async function measureSize(
  field: Field,
  { program, plot, fleet }: Lane,
  size: number,
  say: (line: string) => void,
): Promise<SizeFigures> {
  await using gardener = stopping(await Subject.start(field, plot, program));
  await fleet.growTo(size);
  await gardener.subject.untilResting();
  await gardener.subject.stop();
  await using fresh = stopping(await Subject.start(field, plot, program));
  const syncMs = await fresh.subject.inSync(size * keysEach);
  const processorSeconds = fresh.subject.processorSeconds();
  const residentBytes = fresh.subject.residentBytes();
  say(
    `${program.name}: ${size} in sync after ${(syncMs / 1000).toFixed(1)} s, ${processorSeconds.toFixed(1)} s of processor time, ${mebibytes(residentBytes)} MiB`,
  );
  return { size, syncMs, processorSeconds, residentBytes };
}

/** One change to each in turn, so that what else the machine does meets both alike. */
async function measureLatency(
  field: Field,
  lanes: readonly Lane[],
  changes: number,
  say: (line: string) => void,
): Promise<void> {
  const watch = new Stopwatch(field.audit);
  for (let change = 0; change < changes; change++) {
    for (const lane of lanes) {
      lane.latenciesMs.push(await watch.change(lane, change, 1 + Math.floor(change / lane.fleet.size)));
      await sleep(changeEveryMs);
    }
    if ((change + 1) % 50 === 0) say(`${change + 1} of ${changes} changes of a spec`);
  }
  for (const { fleet } of lanes) await fleet.untilReady();
}

async function measureRest(
  field: Field,
  lanes: readonly Lane[],
  running: readonly Subject[],
  seconds: number,
  say: (line: string) => void,
): Promise<{ rests: Rest[]; residentBytes: number[] }> {
  // what the last change brought about comes to its end, events included
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
  return { rests, residentBytes: running.map((subject) => subject.residentBytes()) };
}

/** The leader is killed, and a spec changed at once: until another that stood by has brought its children about. */
async function measureFailover(
  field: Field,
  lanes: readonly Lane[],
  running: Subject[],
  index: number,
  version: number,
  say: (line: string) => void,
): Promise<number> {
  const [lane, leader] = [lanes[index], running[index]];
  if (lane === undefined || leader === undefined) throw new RangeError(`no operator ${index}`);
  const heir = await Subject.start(field, lane.plot, lane.program);
  running[index] = heir;
  try {
    await heir.untilResting();
  } finally {
    await leader.stop("SIGKILL");
  }
  const tookMs = await new Stopwatch(field.audit).change(lane, 0, version);
  say(`${lane.program.name}: failover ${(tookMs / 1000).toFixed(1)} s`);
  return tookMs;
}

function stopping(subject: Subject): AsyncDisposable & { readonly subject: Subject } {
  return { subject, [Symbol.asyncDispose]: () => subject.stop() };
}

export function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}
