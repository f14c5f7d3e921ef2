import { Backoff, type BackoffPolicy } from "../../lib/backoff.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { LineTooLong, linesOf } from "../../lib/lines.ts";
import type { KubernetesObject, Ref } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import { ApiError } from "./api-error.ts";
import type { ClusterClient, Selection } from "./client.ts";
import { IdleWatch } from "./idle-watch.ts";
import { pathOf, resourceOf } from "./resources.ts";
import { type StoredObject, storeUncompressed } from "./stored-object.ts";
import { BrokenWatch, parseWatchEvent } from "./watch-event.ts";

/**
 * Receives the key (`namespace/name`, or `name` of a cluster-wide kind) and the stored object, or `undefined`
 * if it was deleted. If the uncompressed object is available, `object` is this object, because decompression
 * takes time. If `isListed` is true, the object comes from a list. A listed object replaces the known object
 * even if it has an older version, as after a restore of etcd.
 */
export type ChangeListener = (
  key: string,
  held: StoredObject | undefined,
  object?: KubernetesObject,
  isListed?: boolean,
) => void;

/** Receives the activity of a reflector for logs and metrics. Its methods must not throw. */
export type ReflectorObserver = {
  listed?(kind: string, objects: number): void;
  /**
   * A watch ended at the time limit of the server, or with `error`. The reflector opens the next watch after
   * `retryMs`.
   */
  interrupted?(kind: string, error: unknown, retryMs: number): void;
  /** A listener threw an error, which is a bug in the operator. */
  listenerFailed?(kind: string, key: string, error: unknown): void;
};

/**
 * The objects that a watch has reported so far. The operator compares them with a new list that has the same
 * selection.
 */
export interface WatchState {
  readonly kind: string;
  readonly selection: Selection;
  /** Whether the last attempt failed and no event has arrived since then. */
  readonly isFailing: boolean;
  /** Resource versions by key. */
  readonly versions: ReadonlyMap<string, string | undefined>;
}

export type ReflectorOptions = Selection & {
  /** The clock for pauses and idle watches. The default is the clock of the client. */
  clock?: Clock;
  random?: () => number;
  observer?: ReflectorObserver;
  /**
   * Whether to store `managedFields`. `isApplied` needs them for kinds that the operator applies. For other
   * kinds they would only use memory.
   */
  keepManagedFields?: boolean;
  /** Converts an object for storage. By default the object is stored unchanged. */
  hold?: (object: KubernetesObject) => StoredObject;
  /** Watch only the object with this name, without a list (RBAC: `get` and `watch`). */
  name?: string;
  /**
   * Whether to only watch objects and never list them (RBAC: only `watch`). A watch without a version first reports the existing objects.
   * The operator does not know which of them is the last, so `synced` only means that the watch has begun.
   */
  neverList?: boolean;
  /**
   * Whether to request only the metadata of the objects, so that the server does not send their content. It is always
   * true for Secrets.
   */
  metadataOnly?: boolean;
  /**
   * A watch without an event for this time counts as broken. The server sends a bookmark about every minute.
   */
  idleTimeoutMs?: number;
  /**
   * The shortest time for which the server keeps a watch open. With jitter the time is up to twice as long.
   */
  watchSeconds?: number;
  pageSize?: number;
  backoff?: BackoffPolicy;
};

const defaultBackoff: BackoffPolicy = { baseMs: 200, capMs: 30_000, jitter: 0.5 };
/**
 * The longest line of a watch. It is larger than the default limit of etcd for an object, because etcd can be
 * configured for larger objects.
 */
const maxLineBytes = 16 * 1024 * 1024;
/**
 * The number of broken watches after which the objects are listed again, because each watch may break at the
 * same event.
 */
const breaksBeforeRelist = 3;
/** A watch that lasted this long counts as healthy, even if no event arrived. */
const healthyMs = 5_000;
const longestRetryAfterMs = 60_000;
/**
 * The number of rejections (403) after which a namespace counts as forbidden. After the first rejections, a
 * new role binding may not be effective yet.
 */
const refusalsUntilForbidden = 4;
/** The number of objects on a page. Small pages keep memory low, because each page is parsed in one step. */
const defaultPageSize = 100;

/**
 * Keeps a copy of the objects of one kind up to date. It lists the objects, and then watches them. When a
 * watch ends, the next watch continues from the last version. If the server no longer has that version, the
 * objects are listed again, and missing objects are reported as deleted. No change is lost, but several
 * changes of one object may be reported as one change.
 */
export class Reflector {
  readonly kind: string;
  readonly #client: ClusterClient;
  readonly #options: ReflectorOptions;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #backoff: Backoff;
  readonly #hold: (object: KubernetesObject) => StoredObject;
  readonly #objects = new Map<string, StoredObject>();
  readonly #listeners: ChangeListener[] = [];
  readonly #beginListeners: (() => void)[] = [];
  readonly #stopping = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  /**
   * The last version in the store. It is `undefined` before the first list, and if the server no longer has
   * the version.
   */
  #version: string | undefined;
  #breaks = 0;
  #refusals = 0;
  #isFailing = false;
  readonly #forbidden = Promise.withResolvers<void>();
  #run: Promise<void> | undefined;

  constructor(client: ClusterClient, kind: string, options: ReflectorOptions = {}) {
    resourceOf(kind);
    this.kind = kind;
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? client.clock;
    this.#random = options.random ?? Math.random;
    this.#hold = options.hold ?? storeUncompressed;
    this.#backoff = new Backoff(options.backoff ?? defaultBackoff, this.#random);
    // If the reflector stops before the first list, this promise rejects, and it may have no handler.
    this.#synced.promise.catch(() => undefined);
  }

  /**
   * Adds a listener. Call this method before `start`, because objects that were already reported are not
   * reported again.
   */
  onChange(listener: ChangeListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Calls the listener when a watch with `neverList` has begun without a version. The watch then reports the
   * existing objects. The reflector reports the deletion of an object before that time only if an earlier
   * watch had reported the object.
   */
  onBegin(listener: () => void): void {
    this.#beginListeners.push(listener);
  }

  start(): this {
    this.#run ??= this.#follow();
    return this;
  }

  /**
   * Resolves when the first complete state is stored and reported. Rejects if the reflector stops before
   * that.
   */
  synced(): Promise<void> {
    return this.#synced.promise;
  }

  /**
   * Resolves when the API server has rejected the first list several times (403), for example in a deleted
   * namespace.
   */
  forbidden(): Promise<void> {
    return this.#forbidden.promise;
  }

  get isFailing(): boolean {
    return this.#isFailing;
  }

  get selection(): Selection {
    return this.#selection();
  }

  get(key: string): KubernetesObject | undefined {
    return this.#objects.get(key)?.object;
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys();
  }

  get state(): WatchState {
    const versions = new Map([...this.#objects].map(([key, held]) => [key, held.resourceVersion]));
    return { kind: this.kind, selection: this.#selection(), isFailing: this.#isFailing, versions };
  }

  /** Stops the watch. No change is reported after the promise resolves. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#run;
    this.#synced.reject(
      new ApiError({ status: 0, reason: "Aborted", message: `watching ${this.kind} was stopped` }),
    );
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const error = await this.#watchUntilItEnds();
      if (signal.aborted) return;
      if (error !== undefined) this.#isFailing = true;
      this.#countRefusal(error);
      const retryMs = this.#pauseAfter(error);
      this.#options.observer?.interrupted?.(this.kind, error, retryMs);
      await sleep(this.#clock, retryMs, signal);
    }
  }

  /** Returns the error that ended the watch, or `undefined` if a healthy watch reached its time limit. */
  async #watchUntilItEnds(): Promise<unknown> {
    try {
      if (this.#version === undefined && this.#lists()) await this.#list();
      const startMs = this.#clock.monotonicMs();
      const progress = await this.#watch();
      const healthy = progress || this.#clock.monotonicMs() - startMs >= healthyMs;
      return healthy ? undefined : new BrokenWatch("the watch ended immediately after its start");
    } catch (error) {
      return error;
    }
  }

  #countRefusal(error: unknown): void {
    const isRefused = error instanceof ApiError && error.status === 403;
    this.#refusals = isRefused ? this.#refusals + 1 : 0;
    if (this.#refusals >= refusalsUntilForbidden) this.#forbidden.resolve();
  }

  #lists(): boolean {
    return this.#options.name === undefined && this.#options.neverList !== true;
  }

  #pauseAfter(error: unknown): number {
    if (error === undefined) {
      this.#isFailing = false;
      this.#backoff.reset();
      return this.#random() * 100;
    }
    if (isForgotten(error)) this.#version = undefined;
    // A stream that breaks repeatedly may break at the same event each time. The objects are then listed
    // again. After other errors, such as an unreachable server, the next watch continues from the last
    // version.
    if (error instanceof BrokenWatch || error instanceof LineTooLong) {
      this.#breaks += 1;
      if (this.#breaks >= breaksBeforeRelist) this.#version = undefined;
    }
    const askedMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    return Math.min(askedMs, longestRetryAfterMs) + this.#backoff.nextMs();
  }

  async #list(): Promise<void> {
    const { pageSize = defaultPageSize } = this.#options;
    const { items, resourceVersion } = await this.#client.listAll(this.kind, {
      ...this.#selection(),
      limit: pageSize,
      ...this.#reading(),
      keep: (object) => [objectKey(object), this.#hold(this.#trimmed(object))] as const,
    });
    this.#options.observer?.listed?.(this.kind, items.length);
    this.#replaceAll(new Map(items), resourceVersion);
  }

  /**
   * Replaces all objects in the store, and then calls the listeners, so that each listener sees a consistent
   * state.
   */
  #replaceAll(objects: Map<string, StoredObject>, version: string | undefined): void {
    const changed: string[] = [];
    for (const key of this.#objects.keys()) {
      if (!objects.has(key)) changed.push(key);
    }
    for (const [key, object] of objects) {
      if (!isSameState(this.#objects.get(key), object)) changed.push(key);
    }
    this.#objects.clear();
    for (const [key, object] of objects) this.#objects.set(key, object);
    this.#version = version;
    this.#isFailing = false;
    for (const key of changed) this.#notify(key, this.#objects.get(key), undefined, true);
    this.#synced.resolve();
  }

  /** Watches until the stream ends. Returns whether the watch reported a newer version. */
  async #watch(): Promise<boolean> {
    const { idleTimeoutMs = 90_000, watchSeconds = 300 } = this.#options;
    const { signal } = this.#stopping;
    const stream = await this.#client.openWatch(this.kind, {
      ...this.#selection(),
      ...this.#reading(),
      resourceVersion: this.#version,
      timeoutSeconds: Math.ceil(watchSeconds * (1 + this.#random())),
    });
    const end = () => stream.destroy();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    const idle = new IdleWatch(this.#clock, idleTimeoutMs, end);
    try {
      return await this.#read(idle.listening(stream));
    } catch (error) {
      throw idle.expired ? idle.error(this.kind) : error;
    } finally {
      idle.stop();
      signal.removeEventListener("abort", end);
      stream.destroy();
    }
  }

  async #read(stream: AsyncIterable<Buffer>): Promise<boolean> {
    const about = { path: pathOf(this.kind, this.#selection()), secret: this.kind === "Secret" };
    if (this.#version === undefined) await this.#beginAnew();
    let progress = false;
    for await (const line of linesOf(stream, maxLineBytes)) {
      if (this.#stopping.signal.aborted) break;
      if (!this.#take(line, about)) continue;
      progress = true;
      this.#isFailing = false;
      this.#breaks = 0;
      this.#backoff.reset();
    }
    return progress;
  }

  async #beginAnew(): Promise<void> {
    if (this.#options.name !== undefined) {
      await this.#readNamed();
      return;
    }
    this.#replaceAll(new Map(), undefined);
    for (const listener of this.#beginListeners) listener();
  }

  /**
   * Reads one object by name. The watch is opened before the read, so no change between them is lost. The
   * watch may report events from before the read. The reflector ignores events with an older version than the
   * object that it read.
   */
  async #readNamed(): Promise<void> {
    const { namespace, name = "" } = this.#options;
    const { apiVersion } = resourceOf(this.kind);
    const ref: Ref = { apiVersion, kind: this.kind, name, ...(namespace !== undefined && { namespace }) };
    const object = await this.#client.get(ref, this.#reading());
    const found = new Map<string, StoredObject>();
    if (object !== undefined) found.set(objectKey(object), this.#hold(this.#trimmed(object)));
    this.#replaceAll(found, object?.metadata.resourceVersion);
  }

  /** Handles one line of a watch. Returns whether the line reported a new version. */
  #take(line: string, about: { path: string; secret: boolean }): boolean {
    const event = parseWatchEvent(line, about);
    if (event.kind === "error") throw interruption(event.error);
    const version =
      event.kind === "bookmark" ? event.resourceVersion : (event.object.metadata.resourceVersion ?? "");
    if (event.kind === "bookmark") return this.#forward(version);
    const key = objectKey(event.object);
    const isNews = this.#forward(version) || this.#isUnknownYet(key, version);
    if (!isNews) return false;
    if (event.kind === "gone") {
      this.#objects.delete(key);
      this.#notify(key, undefined);
    } else {
      const object = this.#trimmed(event.object);
      const held = this.#hold(object);
      this.#objects.set(key, held);
      this.#notify(key, held, object);
    }
    return true;
  }

  /**
   * Stores `version` as the last version if it is newer. Returns whether it is newer. Events with an older
   * version were already reported by this stream or by the list.
   */
  #forward(version: string): boolean {
    if (!isNewer(version, this.#version)) return false;
    this.#version = version;
    return true;
  }

  /**
   * Returns whether this version of an object is not known yet. A watch without a list begins with the
   * existing objects in the order of their names, so their versions are not in order.
   */
  #isUnknownYet(key: string, version: string): boolean {
    if (this.#options.neverList !== true) return false;
    return isNewer(version, this.#objects.get(key)?.resourceVersion);
  }

  #notify(...change: Parameters<ChangeListener>): void {
    for (const listener of this.#listeners) {
      try {
        listener(...change);
      } catch (error) {
        this.#options.observer?.listenerFailed?.(this.kind, change[0], error);
      }
    }
  }

  #trimmed(object: KubernetesObject): KubernetesObject {
    const trimmed = { ...object, apiVersion: resourceOf(this.kind).apiVersion, kind: this.kind };
    if (this.#options.keepManagedFields) return trimmed;
    const { managedFields, ...metadata } = object.metadata;
    return { ...trimmed, metadata };
  }

  #selection(): Selection {
    const { namespace, labelSelector, fieldSelector, name } = this.#options;
    const field = name === undefined ? fieldSelector : `metadata.name=${name}`;
    return {
      namespace,
      ...(labelSelector !== undefined && { labelSelector }),
      ...(field !== undefined && { fieldSelector: field }),
    };
  }

  #reading(): { signal: AbortSignal; metadataOnly: boolean } {
    const metadataOnly = this.#options.metadataOnly === true || this.kind === "Secret";
    return { signal: this.#stopping.signal, metadataOnly };
  }
}

/**
 * Watches one object by name, without the permission to list. For a Secret it fetches only the metadata. A
 * reconcile reads the content with `ClusterClient.get`.
 */
export function watchOne(
  client: ClusterClient,
  ref: Ref,
  options: Omit<ReflectorOptions, "name"> = {},
): Reflector {
  const namespace = ref.namespace === undefined ? {} : { namespace: ref.namespace };
  return new Reflector(client, ref.kind, { ...options, ...namespace, name: ref.name });
}

/**
 * Returns whether the server does not have the version, because the version was compacted, or because the
 * server was restored from an older backup.
 */
function isForgotten(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 410 || error.causes.some(({ reason }) => reason === "ResourceVersionTooLarge");
}

/**
 * Converts an error event. An expired version, 429 and 503 are valid errors of the server. Any other error
 * event counts as a broken watch.
 */
function interruption(error: ApiError): Error {
  if (isForgotten(error) || error.status === 429 || error.status === 503) return error;
  return new BrokenWatch(error.message, { cause: error });
}

function isSameState(known: StoredObject | undefined, object: StoredObject): boolean {
  return known !== undefined && known.uid === object.uid && known.resourceVersion === object.resourceVersion;
}

/**
 * Returns whether `version` is newer. The versions of one kind increase (Kubernetes API concepts, "Resource
 * versions"). If a version is not a number, every different version counts as newer.
 */
function isNewer(version: string, than: string | undefined): boolean {
  if (than === undefined) return true;
  const numbers = /^\d+$/;
  if (!numbers.test(version) || !numbers.test(than)) return version !== than;
  return version.length === than.length ? version > than : version.length > than.length;
}
