import type { Route } from "../../../config/contract/routing.ts";
import {
  createReplicaSelector,
  type ReplicaDirectory,
  type ReplicaSelector,
} from "../../../server/api/upstream/replicas.ts";
import { pseudoRandom } from "../../../test/support/seed.ts";

/**
 * The policies by which an API process selects a replica. `own streams` is the policy of the versions in
 * which replicas did not report their load.
 */
export const policies = ["own streams", "two choices", "reports", "reports, free slot first"] as const;
export type ChooserPolicy = (typeof policies)[number];

export interface Scenario {
  readonly policy: ChooserPolicy;
  readonly apiProcesses: number;
  readonly replicas: number;
  /** The number of streams that a replica synthesizes concurrently. */
  readonly capacity: number;
  /** The mean share of occupied capacity. */
  readonly load: number;
  readonly requests: number;
  readonly seed: number;
}

export interface SimulationResult {
  /** The share of requests that waited at a full replica while another replica had free capacity. */
  readonly misplaced: number;
  readonly firstAudioP99Ms: number;
  /** The mean number of replicas that were tried for a request. */
  readonly tried: number;
}

const meanStreamMs = 4_000;
const firstAudioMs = 100;
/** The round-trip time of a rejection. */
const hopMs = 2;

interface Replica {
  readonly url: string;
  speaking: number;
  readonly queue: Request[];
}

interface Request {
  readonly atMs: number;
  readonly chooser: ReplicaSelector;
  readonly replica: Replica;
  readonly leave: () => void;
}

const route: Route = { pool: "voice", service: "http://voice", weight: 100, idle: false };

/**
 * Simulates requests in virtual time. The requests arrive at random times (Poisson) at random API processes.
 * The server's own code selects the replicas.
 */
export function simulate(scenario: Scenario): SimulationResult {
  const { policy, capacity, requests, load } = scenario;
  const random = pseudoRandom(scenario.seed);
  const exponential = (mean: number) => -mean * Math.log(1 - random());
  let nowMs = 0;
  const replicas = Array.from(
    { length: scenario.replicas },
    (_, i): Replica => ({ url: `http://${i}`, speaking: 0, queue: [] }),
  );
  const choosers = Array.from({ length: scenario.apiProcesses }, () =>
    createReplicaSelector(directoryOf(replicas), random, () => nowMs),
  );
  const events: { readonly atMs: number; readonly happen: () => void }[] = [];
  const after = (delayMs: number, happen: () => void) => events.push({ atMs: nowMs + delayMs, happen });
  const firstAudio: number[] = [];
  let misplaced = 0;
  let attempts = 0;

  const report = ({ chooser, replica }: Pick<Request, "chooser" | "replica">) => {
    if (policy === "own streams" || policy === "two choices") return;
    chooser.reported(replicaOf(replica), { streams: replica.speaking + replica.queue.length, capacity });
  };
  const speak = (request: Request) => {
    request.replica.speaking++;
    after(firstAudioMs, () => {
      firstAudio.push(nowMs - request.atMs);
      report(request);
    });
    after(firstAudioMs + exponential(meanStreamMs), () => {
      request.replica.speaking--;
      request.leave();
      const next = request.replica.queue.shift();
      if (next) speak(next);
    });
  };
  const send = (atMs: number, chooser: ReplicaSelector, replica: Replica) => {
    attempts++;
    const request = { atMs, chooser, replica, leave: chooser.occupy(replicaOf(replica)) };
    if (replica.speaking < capacity) return speak(request);
    if (replicas.some(({ speaking }) => speaking < capacity)) misplaced++;
    replica.queue.push(request);
  };
  const find = (chooser: ReplicaSelector, tried: ReadonlySet<string>): Replica | undefined => {
    const chosen =
      policy === "two choices" ? twoChoices(chooser, replicas, random) : chooser.choose("mist", tried);
    return replicas.find(({ url }) => url === chosen?.url);
  };
  const place = (atMs: number, chooser: ReplicaSelector, full: ReadonlySet<string> = new Set()) => {
    const replica = find(chooser, full);
    const target = replica ?? find(chooser, new Set());
    if (!target) throw new Error("the replica selector returned no replica");
    const mayQueue = policy !== "reports, free slot first" || replica === undefined;
    if (mayQueue || target.speaking < capacity) return send(atMs, chooser, target);
    attempts++;
    report({ chooser, replica: target });
    after(hopMs, () => place(atMs, chooser, new Set([...full, target.url])));
  };

  const meanGapMs = meanStreamMs / (load * capacity * replicas.length);
  let left = requests;
  const arrive = () => {
    const chooser = choosers[Math.floor(random() * choosers.length)];
    if (chooser) place(nowMs, chooser);
    if (--left > 0) after(exponential(meanGapMs), arrive);
  };
  after(0, arrive);
  for (let next = takeFirst(events); next; next = takeFirst(events)) {
    nowMs = next.atMs;
    next.happen();
  }
  firstAudio.sort((a, b) => a - b);
  return {
    misplaced: misplaced / requests,
    firstAudioP99Ms: firstAudio[Math.ceil(0.99 * firstAudio.length) - 1] ?? 0,
    tried: attempts / requests,
  };
}

function takeFirst<Event extends { readonly atMs: number }>(events: Event[]): Event | undefined {
  let first = 0;
  for (let i = 1; i < events.length; i++) {
    if ((events[i]?.atMs ?? 0) < (events[first]?.atMs ?? 0)) first = i;
  }
  return events.splice(first, 1)[0];
}

/** Selects two random replicas, and returns the replica with fewer streams of this process (Mitzenmacher). */
function twoChoices(chooser: ReplicaSelector, replicas: readonly Replica[], random: () => number) {
  const draw = () => replicas[Math.floor(random() * replicas.length)]?.url;
  const drawn = new Set([draw(), draw()]);
  return chooser.choose("mist", new Set(replicas.map(({ url }) => url).filter((url) => !drawn.has(url))));
}

function replicaOf({ url }: Replica) {
  return { url, pool: route.pool };
}

function directoryOf(replicas: readonly Replica[]): ReplicaDirectory {
  const urls = replicas.map(({ url }) => url);
  return {
    table: () => ({ version: 1, profile: "self-hosted", models: { mist: [route] } }),
    replicas: () => urls,
    onChange: () => undefined,
    close: () => undefined,
  };
}
