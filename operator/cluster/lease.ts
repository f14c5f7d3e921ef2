import { type Clock, sleep, systemClock } from "../../lib/clock.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { ApiError } from "./api-error.ts";
import type { ClusterClient } from "./client.ts";
import { microTime } from "./micro-time.ts";

export type ElectionOptions = {
  client: Pick<ClusterClient, "get" | "create" | "replace">;
  namespace: string;
  name: string;
  /** The identity of this process. It differs for each start of the same pod. */
  identity: string;
  /** Called when this process becomes the leader and may write. */
  onLeading: () => void;
  /**
   * Called when this process must stop writing, because another process may become the leader. `reason` is
   * for the log.
   */
  onLost: (reason: string) => void;
  /** Called after a failed attempt. The election continues. */
  onError?: (error: unknown) => void;
  clock?: Clock;
  random?: () => number;
  /** The time without a change of the Lease after which another process becomes the leader. */
  leaseMs?: number;
  /**
   * The time without a successful renewal after which the leader gives up the leadership. It is shorter than
   * `leaseMs`, because the clocks of two processes may run at different speeds.
   */
  renewDeadlineMs?: number;
  retryMs?: number;
};

type LeaseSpec = {
  holderIdentity?: string | null;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
};
type Lease = KubernetesObject & { spec?: LeaseSpec };

/**
 * Leader election with a `coordination.k8s.io/v1` Lease, by the rules of client-go. The holder renews the
 * Lease every `retryMs`. A candidate ignores the times in the Lease. It waits until its own clock shows that
 * the Lease has not changed for `leaseMs`. Every write contains the version that was read before, so that one
 * of two concurrent writes fails.
 */
export class LeaderElection {
  readonly #options: ElectionOptions;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryMs: number;
  readonly #stopping = new AbortController();
  /** The last known Lease, and the time at which its change was observed. */
  #seen: { lease: Lease; changedMs: number } | undefined;
  #leading = false;
  #run: Promise<void> | undefined;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#leaseMs = options.leaseMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryMs ?? 2_000;
  }

  get leading(): boolean {
    return this.#leading;
  }

  start(): this {
    this.#run ??= this.#campaign();
    return this;
  }

  /**
   * Ends the election and releases the Lease, so that the next leader does not wait until the Lease expires.
   * Call this method when the last reconcile has ended. It does not call `onLost`.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#run;
    if (!this.#leading) return;
    this.#leading = false;
    await this.#resign();
  }

  async #campaign(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const acquiredMs = await this.#acquire();
      if (acquiredMs === undefined) return;
      this.#leading = true;
      this.#options.onLeading();
      const reason = await this.#renewUntilLost(acquiredMs);
      if (reason === undefined) return;
      this.#leading = false;
      this.#options.onLost(reason);
    }
  }

  /**
   * Acquires the Lease. Resolves with the start time of the successful attempt, or with undefined if `stop`
   * was called first.
   */
  async #acquire(): Promise<number | undefined> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const startMs = this.#clock.monotonicMs();
      if (await this.#attempt(() => this.#tryToAcquire())) return startMs;
      await sleep(this.#clock, this.#untilNextTry(), signal);
    }
    return undefined;
  }

  /**
   * Returns the time until the next attempt. If another process holds the Lease, the attempt is not later
   * than the expiry of the Lease.
   */
  #untilNextTry(): number {
    const retryMs = this.#retryMs * (1 + 0.2 * (this.#options.random ?? Math.random)());
    if (this.#seen === undefined || this.#holder() === "") return retryMs;
    const leftMs = this.#seen.changedMs + this.#leaseMs - this.#clock.monotonicMs();
    return leftMs > 0 ? Math.min(retryMs, leftMs + 10) : retryMs;
  }

  /**
   * Renews the Lease. Resolves with the reason why the Lease was lost, or with undefined if `stop` was called
   * first.
   */
  async #renewUntilLost(acquiredMs: number): Promise<string | undefined> {
    const { signal } = this.#stopping;
    let renewedMs = acquiredMs;
    for (;;) {
      await sleep(this.#clock, this.#retryMs, signal);
      if (signal.aborted) return undefined;
      const startMs = this.#clock.monotonicMs();
      const renewed = await this.#attempt(() =>
        this.#tryToRenew(renewedMs + this.#renewDeadlineMs - startMs),
      );
      if (renewed) renewedMs = startMs;
      else if (this.#holder() !== this.#options.identity)
        return `another process holds the Lease: ${this.#holder() || "(released)"}`;
      else if (this.#clock.monotonicMs() - renewedMs >= this.#renewDeadlineMs) {
        return `the Lease could not be renewed for ${this.#renewDeadlineMs} ms`;
      }
    }
  }

  async #attempt(run: () => Promise<boolean>): Promise<boolean> {
    try {
      return await run();
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#options.onError?.(error);
      return false;
    }
  }

  async #tryToAcquire(): Promise<boolean> {
    return this.#within(this.#renewDeadlineMs, this.#stopping.signal, async (signal) => {
      const lease = await this.#read(signal);
      if (lease === undefined) return this.#write(undefined, signal);
      this.#observe(lease);
      return this.#isFree() && this.#write(lease, signal);
    });
  }

  /**
   * Renews the Lease once. `stop` does not abort the request, because releasing the Lease needs the version
   * in its response.
   */
  async #tryToRenew(leftMs: number): Promise<boolean> {
    return this.#within(leftMs, undefined, async (signal) => {
      try {
        return await this.#write(this.#seen?.lease, signal);
      } catch (error) {
        if (!isConflict(error)) throw error;
        const lease = await this.#read(signal);
        if (lease !== undefined) this.#observe(lease);
        // If another client changed the Lease, for example a label, but not its holder, the Lease is renewed
        // with the new version.
        const stillOurs = lease !== undefined && this.#holder() === this.#options.identity;
        return stillOurs && this.#write(lease, signal);
      }
    });
  }

  /**
   * Limits the time of a request. A request without a response must neither prolong the leadership nor delay
   * the next attempt of a candidate.
   */
  async #within<T>(
    limitMs: number,
    outer: AbortSignal | undefined,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const limit = new AbortController();
    const end = () => limit.abort();
    const cancel = this.#clock.after(limitMs, end);
    outer?.addEventListener("abort", end, { once: true });
    try {
      return await run(limit.signal);
    } finally {
      cancel();
      outer?.removeEventListener("abort", end);
    }
  }

  #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, namespace, name } = this.#options;
    return client.get({ ...leaseKind, namespace, name }, { signal });
  }

  async #write(lease: Lease | undefined, signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name, identity } = this.#options;
    const now = microTime(this.#clock.nowMs());
    const before = lease?.spec ?? {};
    const isLeader = before.holderIdentity === identity;
    const spec: LeaseSpec = {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#leaseMs / 1000),
      acquireTime: isLeader ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before.leaseTransitions ?? 0) + (isLeader || lease === undefined ? 0 : 1),
    };
    const written =
      lease === undefined
        ? await client.create({ ...leaseKind, metadata: { namespace, name }, spec }, { signal })
        : await client.replace({ ...lease, spec }, { signal });
    this.#observe(written);
    return true;
  }

  #observe(lease: Lease): void {
    const isNew = this.#seen?.lease.metadata.resourceVersion !== lease.metadata.resourceVersion;
    const changedMs = isNew || this.#seen === undefined ? this.#clock.monotonicMs() : this.#seen.changedMs;
    this.#seen = { lease, changedMs };
  }

  #holder(): string {
    return this.#seen?.lease.spec?.holderIdentity ?? "";
  }

  #isFree(): boolean {
    const holder = this.#holder();
    if (holder === "" || holder === this.#options.identity) return true;
    const changedMs = this.#seen?.changedMs ?? 0;
    return this.#clock.monotonicMs() - changedMs >= this.#leaseMs;
  }

  async #resign(): Promise<void> {
    const lease = this.#seen?.lease;
    if (lease === undefined) return;
    const now = microTime(this.#clock.nowMs());
    const spec: LeaseSpec = {
      ...lease.spec,
      holderIdentity: "",
      leaseDurationSeconds: 1,
      renewTime: now,
      acquireTime: now,
    };
    try {
      await this.#within(this.#retryMs, undefined, (signal) =>
        this.#options.client.replace({ ...lease, spec }, { signal }),
      );
    } catch (error) {
      // The failure only delays the next leader, because the Lease expires.
      this.#options.onError?.(error);
    }
  }
}

const leaseKind = { apiVersion: "coordination.k8s.io/v1", kind: "Lease" };

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409;
}
