import { type Clock, sleep, systemClock } from "../../lib/clock.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { ApiError } from "./api-error.ts";
import type { ClusterClient } from "./client.ts";
import { microTime } from "./micro-time.ts";

export type ElectionOptions = {
  client: Pick<ClusterClient, "get" | "create" | "replace">;
  namespace: string;
  name: string;
  /** Unique for this process, also across restarts of the same pod. */
  identity: string;
  /** Called when this process becomes the leader and may write. */
  onLeading: () => void;
  /** Called when this process must stop writing, because another may become the leader. `reason` is for the log. */
  onLost: (reason: string) => void;
  /** Called after a failed attempt. The election continues. */
  onError?: (error: unknown) => void;
  clock?: Clock;
  random?: () => number;
  /** Another process takes over if the Lease has not changed for this time. */
  leaseMs?: number;
  /** The leader steps down if it could not renew the Lease for this time. It is shorter than `leaseMs`, to allow for slow clocks. */
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
 * Leader election by a `coordination.k8s.io/v1` Lease, with the rules of client-go: the holder renews the lease every
 * `retryMs`. A candidate waits until the lease has not changed for `leaseMs` by its own clock; it ignores the times in the lease. Every write
 * carries the version that was read before, so that one of two concurrent writes fails.
 */
export class LeaderElection {
  readonly #options: ElectionOptions;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryMs: number;
  readonly #stopping = new AbortController();
  /** The Lease as it was last seen, and when it changed. */
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
   * Ends the election and releases the Lease, so that the next leader does not wait for its expiry. Call this when the last
   * reconcile has ended. `onLost` is not called.
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

  /** Acquires the Lease. Resolves with the start time of the successful attempt, or with undefined if stop() was called first. */
  async #acquire(): Promise<number | undefined> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const startMs = this.#clock.monotonicMs();
      if (await this.#attempt(() => this.#tryToAcquire())) return startMs;
      await sleep(this.#clock, this.#untilNextTry(), signal);
    }
    return undefined;
  }

  /** The time to the next attempt, which is not after the expiry of the current Lease. */
  #untilNextTry(): number {
    const retryMs = this.#retryMs * (1 + 0.2 * (this.#options.random ?? Math.random)());
    if (this.#seen === undefined || this.#holder() === "") return retryMs;
    const leftMs = this.#seen.changedMs + this.#leaseMs - this.#clock.monotonicMs();
    return leftMs > 0 ? Math.min(retryMs, leftMs + 10) : retryMs;
  }

  /** Renews the Lease. Resolves with the reason of its loss, or with undefined if stop() was called first. */
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
        return `the lease is held by ${this.#holder() || "no process"}`;
      else if (this.#clock.monotonicMs() - renewedMs >= this.#renewDeadlineMs) {
        return `the lease could not be renewed for ${this.#renewDeadlineMs} ms`;
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

  /** A stop does not abort the request, because without its response the version for releasing the Lease is unknown. */
  async #tryToRenew(leftMs: number): Promise<boolean> {
    return this.#within(leftMs, undefined, async (signal) => {
      try {
        return await this.#write(this.#seen?.lease, signal);
      } catch (error) {
        if (!isConflict(error)) throw error;
        const lease = await this.#read(signal);
        if (lease !== undefined) this.#observe(lease);
        // Another client changed the Lease (for example a label) without taking it: renew it with the new version.
        const stillOurs = lease !== undefined && this.#holder() === this.#options.identity;
        return stillOurs && this.#write(lease, signal);
      }
    });
  }

  /** Limits the time of a request. One that hangs must not prolong the leadership, or delay the next attempt of a candidate. */
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
    const ours = before.holderIdentity === identity;
    const spec: LeaseSpec = {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#leaseMs / 1000),
      acquireTime: ours ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before.leaseTransitions ?? 0) + (ours || lease === undefined ? 0 : 1),
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
      // The Lease expires anyway.
      this.#options.onError?.(error);
    }
  }
}

const leaseKind = { apiVersion: "coordination.k8s.io/v1", kind: "Lease" };

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409;
}
