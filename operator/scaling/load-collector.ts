import { Agent, request } from "undici";
import { maxResponseBytes } from "../../config/contract/license-check.ts";
import { type ApiLoad, loadHeartbeatMs, loadPath, type PoolLoad } from "../../config/contract/load.ts";
import { Backoff, type BackoffPolicy } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { linesOf } from "../../lib/lines.ts";

/** An API pod that reports its load. */
export interface LoadReporter {
  readonly pod: string;
  /** The base URL of the pod, such as `http://10.0.0.7:8000`. */
  readonly url: string;
}

/** The total demand for one pool, from all API pods of the TtsDeployment. */
export interface PoolDemand {
  readonly streams: number;
  readonly waiting: number;
  readonly firstAudioMs: number | undefined;
  /** The number of streams by base URL of the replica. */
  readonly replicas: ReadonlyMap<string, number>;
}

export interface LoadCollectorOptions {
  readonly clock: Clock;
  /** Called with the key of a TtsDeployment when its load changes, becomes known, or becomes unknown. */
  readonly onChange: (key: string) => void;
  readonly onError: (key: string, pod: string, error: unknown) => void;
}

/** The time after which a load report is stale. API pods send several reports in this time. */
const staleMs = 3 * loadHeartbeatMs;
/** The longest line of a load report, which has space for eight pools with a thousand replicas each. */
const maxLineBytes = 1024 * 1024;
const retryPolicy: BackoffPolicy = { baseMs: 250, capMs: 10_000, jitter: 0.5 };

interface Followed {
  readonly url: string;
  readonly stop: AbortController;
  load: ApiLoad | undefined;
  lastReportMs: number;
  readonly sinceMs: number;
}

/**
 * Collects the load of each pool from the API pods. Each API pod reports changes over one open connection.
 */
export class LoadCollector {
  readonly #options: LoadCollectorOptions;
  /** The HTTP client. After these timeouts, an API pod counts as unreachable. */
  readonly #agent = new Agent({ headersTimeout: 5_000, bodyTimeout: staleMs, connectTimeout: 3_000 });
  /** The connections by TtsDeployment, and by pod. */
  readonly #followed = new Map<string, Map<string, Followed>>();
  readonly #tokens = new Map<string, readonly string[]>();
  readonly #running = new Set<Promise<void>>();

  constructor(options: LoadCollectorOptions) {
    this.#options = options;
  }

  /**
   * Sets the API pods of a TtsDeployment that report their load. `tokens` are the internal tokens that API
   * pods may accept now.
   */
  follow(key: string, reporters: readonly LoadReporter[], tokens: readonly string[]): void {
    const known = this.#followed.get(key) ?? new Map<string, Followed>();
    this.#followed.set(key, known);
    this.#tokens.set(key, tokens);
    const removed = [...known].filter(
      ([pod, { url }]) => !reporters.some((reporter) => reporter.pod === pod && reporter.url === url),
    );
    for (const [pod, { stop }] of removed) {
      stop.abort();
      known.delete(pod);
    }
    for (const reporter of reporters)
      if (!known.has(reporter.pod)) known.set(reporter.pod, this.#begin(key, reporter));
    if (removed.length > 0) this.#options.onChange(key);
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

  /** Returns the last report of each pod that reports, by TtsDeployment and pod. */
  loads(): Map<string, ApiLoad> {
    const loads = new Map<string, ApiLoad>();
    for (const [key, pods] of this.#followed)
      for (const [pod, { load }] of pods) if (load !== undefined) loads.set(`${key}/${pod}`, load);
    return loads;
  }

  /**
   * Returns the pods without a current report, and the time since their last report or, without a report,
   * since their connection was started. Returns undefined if there are no pods.
   */
  silent(key: string): { pod: string; forMs: number }[] | undefined {
    const known = this.#followed.get(key);
    if (known === undefined || known.size === 0) return undefined;
    const nowMs = this.#options.clock.monotonicMs();
    return [...known]
      .filter(([, followed]) => !this.#isFresh(followed))
      .map(([pod, { lastReportMs, sinceMs }]) => ({ pod, forMs: nowMs - Math.max(lastReportMs, sinceMs) }));
  }

  /** Returns the demand for a pool, from the pods that report. */
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

  /** Returns the number of streams of all pools, in progress or waiting, from the pods that report. */
  streams(key: string): number {
    const loads = [...(this.#followed.get(key)?.values() ?? [])].filter((followed) =>
      this.#isFresh(followed),
    );
    return loads
      .flatMap(({ load }) => Object.values(load?.pools ?? {}))
      .reduce((sum, { streams, waiting }) => sum + streams + waiting, 0);
  }

  /** Returns the different responses of the license issuer that the pods report. */
  licenseAnswers(key: string): string[] {
    const loads = [...(this.#followed.get(key)?.values() ?? [])].filter((followed) =>
      this.#isFresh(followed),
    );
    return [...new Set(loads.flatMap(({ load }) => load?.licenseAnswer ?? []))].sort();
  }

  #isFresh({ load, lastReportMs }: Followed): boolean {
    return load !== undefined && this.#options.clock.monotonicMs() - lastReportMs < staleMs;
  }

  #begin(key: string, { pod, url }: LoadReporter): Followed {
    const sinceMs = this.#options.clock.monotonicMs();
    const lastReportMs = Number.NEGATIVE_INFINITY;
    const followed: Followed = { url, stop: new AbortController(), load: undefined, lastReportMs, sinceMs };
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
    // During a rotation, a pod may accept the previous or the new token, so each retry uses another token.
    const token = tokens[backoff.failures % Math.max(1, tokens.length)] ?? "";
    const { statusCode, body } = await request(followed.url + loadPath, {
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${token}` },
      signal: followed.stop.signal,
    });
    if (statusCode !== 200) {
      await body.dump();
      throw new Error(`GET ${loadPath} responded with status ${statusCode}`);
    }
    for await (const line of linesOf(body, maxLineBytes)) {
      const load = loadOf(line);
      const isChanged = JSON.stringify(load) !== JSON.stringify(followed.load);
      followed.load = load;
      followed.lastReportMs = clock.monotonicMs();
      backoff.reset();
      if (isChanged) onChange(key);
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

/** Parses a load report. Throws if the line is not a valid load report. */
function loadOf(line: string): ApiLoad {
  const load = JSON.parse(line) as Partial<ApiLoad> | null;
  const pools = load?.pools;
  if (typeof pools !== "object" || pools === null)
    throw new Error("the load report is invalid: it has no pools");
  for (const [pool, figures] of Object.entries(pools)) {
    const { streams, waiting, replicas, firstAudioMs = 0 } = figures;
    const counts = [streams, waiting, firstAudioMs, ...Object.values(replicas ?? { none: Number.NaN })];
    if (!counts.every(isCount))
      throw new Error(
        `the load report is invalid: the counts of pool ${JSON.stringify(pool)} are not whole numbers`,
      );
  }
  const { licenseAnswer } = load ?? {};
  if (licenseAnswer === undefined) return { pools };
  if (typeof licenseAnswer !== "string" || licenseAnswer.length > maxResponseBytes)
    throw new Error("the load report is invalid: licenseAnswer is not a string, or is too long");
  return { pools, licenseAnswer };
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
