import type { Dispatcher } from "undici";
import { Backoff } from "../../../../lib/backoff.ts";
import { type Clock, sleep } from "../../../../lib/clock.ts";
import { linesOf } from "../../../../lib/lines.ts";
import type { Log } from "../../../../lib/log.ts";
import {
  ApiServerError,
  authorize,
  type ClusterAccess,
  createClusterAgent,
  requireOk,
} from "./connection.ts";

/** The fields of a Kubernetes object that `follow` needs. */
export interface KubernetesItem {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
}

export interface ObjectQuery {
  /** The path of the collection, for example `/api/v1/namespaces/speech/configmaps`. */
  readonly path: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface FollowOptions<Kind extends KubernetesItem> {
  readonly access: ClusterAccess;
  readonly query: ObjectQuery;
  readonly log: Log;
  /** The watch calls this function with all objects after every change. */
  readonly onItems: (items: readonly Kind[]) => void;
  /** Returns a random number that is at least 0 and less than 1. */
  readonly random: () => number;
  readonly clock: Clock;
  readonly timing?: Partial<FollowTiming>;
}

export interface FollowTiming {
  readonly firstBackoffMs: number;
  readonly longestBackoffMs: number;
  /** The API server ends a watch after this number of seconds. */
  readonly watchSeconds: number;
}

const usualTiming: FollowTiming = { firstBackoffMs: 250, longestBackoffMs: 10_000, watchSeconds: 240 };
/** A watch that exceeds `watchSeconds` by this time counts as dead, and is aborted. */
const watchSlackMs = 10_000;
const pageSize = 500;
/** The limit for the length of one watch event. The largest object in the API server has 1.5 MB. */
const maxLineBytes = 8 * 1024 * 1024;

/**
 * Follows objects by list and watch. After an error, such as an expired version or a broken connection, the
 * function lists the objects again, with a growing delay and jitter. The caller keeps the last known objects
 * in the meantime.
 * @returns a function that stops the watch.
 */
export function follow<Kind extends KubernetesItem>(options: FollowOptions<Kind>): () => void {
  const stop = new AbortController();
  const follower = new Follower(options, stop.signal);
  void follower.run();
  return () => stop.abort();
}

class Follower<Kind extends KubernetesItem> {
  readonly #options: FollowOptions<Kind>;
  readonly #timing: FollowTiming;
  readonly #signal: AbortSignal;
  readonly #items = new Map<string, Kind>();
  #version = "";
  readonly #backoff: Backoff;

  constructor(options: FollowOptions<Kind>, signal: AbortSignal) {
    this.#options = options;
    this.#timing = { ...usualTiming, ...options.timing };
    this.#signal = signal;
    const { firstBackoffMs, longestBackoffMs } = this.#timing;
    const policy = { baseMs: firstBackoffMs, capMs: longestBackoffMs, jitter: 0.5 };
    this.#backoff = new Backoff(policy, options.random);
  }

  /** Follows the objects until the signal aborts. Errors are logged, and the operation is retried. */
  async run(): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        await this.#listAndWatch();
      } catch (error) {
        if (this.#signal.aborted) return;
        this.#options.log.warn(
          { err: error, path: this.#options.query.path },
          "the watch was interrupted; the objects are listed again",
        );
        await sleep(this.#options.clock, this.#backoff.nextMs(), this.#signal);
      }
    }
  }

  async #listAndWatch(): Promise<void> {
    const agent = createClusterAgent(this.#options.access);
    try {
      await this.#list(agent);
      while (!this.#signal.aborted) await this.#watch(agent);
    } finally {
      await agent.destroy();
    }
  }

  async #list(agent: Dispatcher): Promise<void> {
    const listed = new Map<string, Kind>();
    let page: string | undefined;
    do {
      const list = await this.#getPage(agent, page);
      for (const item of list.items ?? []) listed.set(item.metadata.name, item);
      this.#version = list.metadata.resourceVersion;
      page = list.metadata.continue || undefined;
    } while (page !== undefined);
    this.#items.clear();
    for (const [name, item] of listed) this.#items.set(name, item);
    this.#publish();
  }

  async #getPage(agent: Dispatcher, page: string | undefined): Promise<ItemList<Kind>> {
    const path = this.#path({ limit: String(pageSize), ...(page !== undefined && { continue: page }) });
    const response = await this.#get(agent, path);
    return (await response.body.json()) as ItemList<Kind>;
  }

  async #watch(agent: Dispatcher): Promise<void> {
    const { watchSeconds } = this.#timing;
    const overdue = AbortSignal.timeout(watchSeconds * 1000 + watchSlackMs);
    const path = this.#path({
      watch: "1",
      allowWatchBookmarks: "true",
      timeoutSeconds: String(watchSeconds),
      resourceVersion: this.#version,
    });
    const startedAt = this.#options.clock.monotonicMs();
    const { body } = await this.#get(agent, path, overdue);
    let events = 0;
    for await (const line of linesOf(body, maxLineBytes)) {
      events += 1;
      this.#apply(JSON.parse(line) as WatchEvent<Kind>);
      this.#backoff.reset();
    }
    const wasBrief = this.#options.clock.monotonicMs() - startedAt < 1000;
    if (events === 0 && wasBrief)
      throw new Error("the API server ended the watch immediately, without an event");
  }

  async #get(agent: Dispatcher, path: string, also?: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { access } = this.#options;
    const signal = also ? AbortSignal.any([this.#signal, also]) : this.#signal;
    const response = await agent.request({
      origin: access.url,
      path,
      method: "GET",
      headers: authorize(access),
      signal,
    });
    await requireOk(response, path);
    return response;
  }

  #apply({ type, object }: WatchEvent<Kind>): void {
    if (type === "ERROR") {
      const status = object as unknown as { code?: number; message?: string };
      throw new ApiServerError(status.code ?? 500, status.message ?? "the watch failed");
    }
    this.#version = object.metadata.resourceVersion ?? this.#version;
    if (type === "BOOKMARK") return;
    if (type === "DELETED") this.#items.delete(object.metadata.name);
    else this.#items.set(object.metadata.name, object);
    this.#publish();
  }

  #publish(): void {
    this.#options.onItems([...this.#items.values()]);
  }

  #path(more: Record<string, string>): string {
    const { path, fieldSelector, labelSelector } = this.#options.query;
    const query = new URLSearchParams({
      ...(fieldSelector !== undefined && { fieldSelector }),
      ...(labelSelector !== undefined && { labelSelector }),
      ...more,
    });
    return `${path}?${query}`;
  }
}

interface ItemList<Kind> {
  readonly items?: readonly Kind[];
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
}

interface WatchEvent<Kind> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: Kind;
}
