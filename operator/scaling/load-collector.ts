import { Agent, request } from "undici";
import { maxResponseBytes } from "../../config/contract/license-check.ts";
import { type ApiLoad, loadHeartbeatMs, loadPath, type PoolLoad } from "../../config/contract/load.ts";
import { Backoff, type BackoffPolicy } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { linesOf } from "../../lib/lines.ts";

/** An API pod that reports its load. */
export interface LoadReporter {
  readonly pod: string;
  /** The base URL, such as `http://10.0.0.7:8000`. */
  readonly url: string;
}

/** The demand for one pool, over all API pods of its TtsDeployment. */
export interface PoolDemand {
  readonly streams: number;
  readonly waiting: number;
  readonly firstAudioMs: number | undefined;
  /** By base URL of the replica. */
  readonly replicas: ReadonlyMap<string, number>;
}

export interface LoadCollectorOptions {
  readonly clock: Clock;
  /** Called with the key of a TtsDeployment whose load changed, or became known or unknown. */
  readonly onChange: (key: string) => void;
  readonly onError: (key: string, pod: string, error: unknown) => void;
}

/** A load report is stale after this time, in which several reports were due. */
const staleMs = 3 * loadHeartbeatMs;
/** Enough for eight pools with a thousand replicas each. */
const maxLineBytes = 1024 * 1024;
const retryPolicy: BackoffPolicy = { baseMs: 250, capMs: 10_000, jitter: 0.5 };

interface Followed {
  readonly url: string;
  readonly stop: AbortController;
  load: ApiLoad | undefined;
  heardMs: number;
  readonly sinceMs: number;
}

/** Collects the load of each pool from the API pods. Each API pod reports changes over one open connection. */
export class LoadCollector {
  readonly #options: LoadCollectorOptions;
  /** A pod without a report for this long counts as unreachable. */
  readonly #agent = new Agent({ headersTimeout: 5_000, bodyTimeout: staleMs, connectTimeout: 3_000 });
  /** By TtsDeployment, then by pod. */
  readonly #followed = new Map<string, Map<string, Followed>>();
  readonly #tokens = new Map<string, readonly string[]>();
  readonly #running = new Set<Promise<void>>();

  constructor(options: LoadCollectorOptions) {
    this.#options = options;
  }

  /** Sets the pods whose load is collected. `tokens` are those that API pods may accept now. */
  follow(key: string, reporters: readonly LoadReporter[], tokens: readonly string[]): void {
    const known = this.#followed.get(key) ?? new Map<string, Followed>();
    this.#followed.set(key, known);
    this.#tokens.set(key, tokens);
    const gone = [...known].filter(
      ([pod, { url }]) => !reporters.some((reporter) => reporter.pod === pod && reporter.url === url),
    );
    for (const [pod, { stop }] of gone) {
      stop.abort();
      known.delete(pod);
    }
    for (const reporter of reporters)
      if (!known.has(reporter.pod)) known.set(reporter.pod, this.#begin(key, reporter));
    if (gone.length > 0) this.#options.onChange(key);
  }

  forget(key: string): void {
    for (const { stop } of this.#followed.get(key)?.values() ?? []) stop.abort();
    this.#followed.delete(key);
    this.#tokens.delete(key);
  }

  async stop(): Promise<void> {
    for (const key of [...this.#followed.keys()]) this.forget(key);
    await Promise.all(this.#running);
    await this.#agent.destroy();
  }

  /** The last report of each pod, by TtsDeployment and pod; a pod that does not report is missing. */
  loads(): Map<string, ApiLoad> {
    const loads = new Map<string, ApiLoad>();
    for (const [key, pods] of this.#followed)
      for (const [pod, { load }] of pods) if (load !== undefined) loads.set(`${key}/${pod}`, load);
    return loads;
  }

  /** The pods that do not report, and for how long. Undefined if no pod is watched. */
  silent(key: string): { pod: string; forMs: number }[] | undefined {
    const known = this.#followed.get(key);
    if (known === undefined || known.size === 0) return undefined;
    const nowMs = this.#options.clock.monotonicMs();
    return [...known]
      .filter(([, followed]) => !this.#isFresh(followed))
      .map(([pod, { heardMs, sinceMs }]) => ({ pod, forMs: nowMs - Math.max(heardMs, sinceMs) }));
  }

  /** The demand for a pool, from the pods that report. */
  figures(key: string, pool: string): PoolDemand {
    const loads = [...(this.#followed.get(key)?.values() ?? [])]
      .filter((followed) => this.#isFresh(followed))
      .map(({ load }) => load?.pools[pool])
      .filter((load) => load !== undefined);
    const latencies = loads.flatMap(({ firstAudioMs }) => firstAudioMs ?? []);
    return {
      streams: loads.reduce((sum, { streams }) => sum + streams, 0),
      waiting: loads.reduce((sum, { waiting }) => sum + waiting, 0),
      firstAudioMs: latencies.length === 0 ? undefined : Math.max(...latencies),
      replicas: replicasOf(loads),
    };
  }

  /** The streams of all pools, in progress or waiting, from the pods that report. */
  streams(key: string): number {
    const loads = [...(this.#followed.get(key)?.values() ?? [])].filter((followed) =>
      this.#isFresh(followed),
    );
    return loads
      .flatMap(({ load }) => Object.values(load?.pools ?? {}))
      .reduce((sum, { streams, waiting }) => sum + streams + waiting, 0);
  }

  /** The distinct license responses that the pods report. */
  licenseAnswers(key: string): string[] {
    const loads = [...(this.#followed.get(key)?.values() ?? [])].filter((followed) =>
      this.#isFresh(followed),
    );
    return [...new Set(loads.flatMap(({ load }) => load?.licenseAnswer ?? []))].sort();
  }

  #isFresh({ load, heardMs }: Followed): boolean {
    return load !== undefined && this.#options.clock.monotonicMs() - heardMs < staleMs;
  }

  #begin(key: string, { pod, url }: LoadReporter): Followed {
    const sinceMs = this.#options.clock.monotonicMs();
    const heardMs = Number.NEGATIVE_INFINITY;
    const followed: Followed = { url, stop: new AbortController(), load: undefined, heardMs, sinceMs };
    const running = this.#listen(key, pod, followed).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return followed;
  }

  async #listen(key: string, pod: string, followed: Followed): Promise<void> {
    const { clock, onChange, onError } = this.#options;
    const { signal } = followed.stop;
    const backoff = new Backoff(retryPolicy);
    while (!signal.aborted) {
      try {
        await this.#read(key, followed, backoff);
      } catch (error) {
        if (!signal.aborted) onError(key, pod, error);
      }
      if (signal.aborted) return;
      followed.load = undefined;
      onChange(key);
      await sleep(clock, backoff.nextMs(), signal);
    }
  }

  async #read(key: string, followed: Followed, backoff: Backoff): Promise<void> {
    const { clock, onChange } = this.#options;
    const tokens = this.#tokens.get(key) ?? [];
    // during a rotation pods may accept the previous or the next token
    const token = tokens[backoff.failures % Math.max(1, tokens.length)] ?? "";
    const { statusCode, body } = await request(followed.url + loadPath, {
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${token}` },
      signal: followed.stop.signal,
    });
    if (statusCode !== 200) {
      await body.dump();
      throw new Error(`status ${statusCode}`);
    }
    for await (const line of linesOf(body, maxLineBytes)) {
      const load = loadOf(line);
      const isNews = JSON.stringify(load) !== JSON.stringify(followed.load);
      followed.load = load;
      followed.heardMs = clock.monotonicMs();
      backoff.reset();
      if (isNews) onChange(key);
    }
  }
}

function replicasOf(loads: readonly PoolLoad[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { replicas } of loads) {
    for (const [url, streams] of Object.entries(replicas)) sums.set(url, (sums.get(url) ?? 0) + streams);
  }
  return sums;
}

/** @throws Error if the line is not a valid load report */
function loadOf(line: string): ApiLoad {
  const load = JSON.parse(line) as Partial<ApiLoad> | null;
  const pools = load?.pools;
  if (typeof pools !== "object" || pools === null) throw new Error("a load report has no pools");
  for (const [pool, figures] of Object.entries(pools)) {
    const { streams, waiting, replicas, firstAudioMs = 0 } = figures;
    const counts = [streams, waiting, firstAudioMs, ...Object.values(replicas ?? { none: Number.NaN })];
    if (!counts.every(isCount))
      throw new Error(`the load of pool ${JSON.stringify(pool)} has invalid counts`);
  }
  const { licenseAnswer } = load ?? {};
  if (licenseAnswer === undefined) return { pools };
  if (typeof licenseAnswer !== "string" || licenseAnswer.length > maxResponseBytes)
    throw new Error("a load report has an invalid response of the license's issuer");
  return { pools, licenseAnswer };
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
