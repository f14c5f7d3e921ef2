import { attemptLabel } from "../../config/contract/pool-metrics.ts";
import type { CanarySpec, CanaryState } from "../../crds/tts-model-pool.ts";
import type { Clock } from "../../lib/clock.ts";
import { LruCache } from "../../lib/lru-cache.ts";
import type { Pod, TtsModelPool } from "../facts/observed.ts";
import type { CanaryFacts } from "../rollout/canary.ts";
import { type CanaryMetrics, readCanaryMetrics, since } from "../rollout/canary-metrics.ts";

export interface CanaryMetricsReaderOptions {
  readonly clock: Clock;
  /** Reads `/metrics` of an API pod. Throws if the pod does not respond in time. */
  readonly readMetrics: (pod: Pod) => Promise<string>;
  readonly onUnread: (pod: string, error: unknown) => void;
}

interface Reading {
  readonly counted: string;
  readonly atMs: number;
  /** The result of this reading, or undefined if the reading failed. */
  readonly figures: CanaryFacts["figures"];
  /** The metrics of the last successful reading. The next reading is compared with them. */
  readonly latest: CanaryMetrics | undefined;
}

/**
 * The number of canaries for which the last metrics are kept. If the metrics of a canary are dropped, its
 * next reading counts as the first.
 */
const mostReadings = 1000;

/**
 * Reads the metrics of a canary from the API pods, once in each interval, also if reconciles are more
 * frequent.
 */
export class CanaryMetricsReader {
  readonly #options: CanaryMetricsReaderOptions;
  /** The last readings, by namespace and name of the pool. */
  readonly #readings = new LruCache<string, Reading>(mostReadings);

  constructor(options: CanaryMetricsReaderOptions) {
    this.#options = options;
  }

  /**
   * Returns the metrics of a canary, or undefined if the last reading failed. `name` is the label `pool` of
   * the canary's metrics.
   */
  async figuresOf(
    { metadata }: TtsModelPool,
    name: string,
    state: CanaryState,
    { analysis }: CanarySpec,
    apiPods: readonly Pod[],
  ): Promise<CanaryFacts["figures"]> {
    const key = `${metadata.namespace}/${metadata.name}`;
    const known = this.#readings.get(key);
    const counted = attemptLabel(state);
    const last = known?.counted === counted ? known : undefined;
    const atMs = this.#options.clock.monotonicMs();
    // A reconcile for the next reading may start up to 20 ms early, and must then read the metrics.
    if (last && atMs - last.atMs < analysis.intervalSeconds * 1000 - 20) return last.figures;
    const whole = await this.#readAll(apiPods, { pool: name, revision: counted });
    const recent = whole && last?.latest && since(last.latest, whole);
    const figures = whole && { whole, recent };
    this.#readings.set(key, { counted, atMs, figures, latest: whole ?? last?.latest });
    return figures;
  }

  async #readAll(
    pods: readonly Pod[],
    of: { pool: string; revision: string },
  ): Promise<CanaryMetrics | undefined> {
    const { readMetrics, onUnread } = this.#options;
    const alive = pods.filter(({ status }) => status?.podIP !== undefined && status.phase === "Running");
    const texts = await Promise.all(
      alive.map((pod) =>
        readMetrics(pod).catch((error: unknown) => {
          onUnread(pod.metadata.name, error);
          return undefined;
        }),
      ),
    );
    const read = texts.filter((text) => text !== undefined);
    return read.length === 0 ? undefined : readCanaryMetrics(read, of);
  }
}
