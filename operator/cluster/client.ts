import type { Readable } from "node:stream";
import { fieldManager } from "../../config/contract/names.ts";
import { type BackoffPolicy, backoffMs } from "../../lib/backoff.ts";
import { type Clock, sleep, systemClock } from "../../lib/clock.ts";
import type { KubernetesObject, ManagedFieldsEntry, Ref } from "../facts/kubernetes-object.ts";
import { ApiError } from "./api-error.ts";
import { applyConfigurationOf } from "./apply-configuration.ts";
import { ClockSkew } from "./clock-skew.ts";
import type { Connection } from "./connect.ts";
import { pathOf, resourceOf } from "./resources.ts";
import { type QueryParameters, Transport, type TransportCall, type TransportOptions } from "./transport.ts";

/**
 * Called after every attempt of a request, for metrics. `status` is 0 if no response arrived. It must not
 * throw.
 */
export type CallObserver = (call: { method: string; kind: string; status: number; tookMs: number }) => void;

export type ClientOptions = TransportOptions & {
  random?: () => number;
  observer?: CallObserver;
  /** The longest time of one attempt. */
  timeoutMs?: number;
  /** The number of attempts of requests that may be repeated. */
  attempts?: number;
};

export type Selection = { namespace?: string | undefined; labelSelector?: string; fieldSelector?: string };
export type ReadOptions = {
  signal?: AbortSignal | undefined;
  /** Fetch only `metadata` (`PartialObjectMetadata`). */
  metadataOnly?: boolean;
};
export type ListOptions = Selection & ReadOptions & { limit?: number };
export type ListWatchOptions = Selection &
  ReadOptions & { resourceVersion: string | undefined; timeoutSeconds: number };
type Page = { items: KubernetesObject[]; resourceVersion: string; continueToken: string | undefined };

export type ApplyOptions = {
  /** The field manager. The default is `tts-operator`. */
  manager?: string;
  /**
   * Whether the apply takes over fields of other managers that have another value. If it is false, the apply
   * fails with a conflict. The default is true.
   */
  force?: boolean;
  /** Validate the request without changing anything. */
  dryRun?: boolean;
  signal?: AbortSignal;
};

export type RemoveOptions = {
  propagation?: "Foreground" | "Background" | "Orphan";
  /** Delete only the object with this UID, and not a newer object with the same name. */
  uid?: string;
  /** Delete the object only if it still has this version. */
  resourceVersion?: string;
  signal?: AbortSignal;
};

/** One operation of a JSON patch (RFC 6902). */
export type PatchOperation =
  | { op: "add" | "test"; path: string; value: unknown }
  | { op: "remove"; path: string };

export type LogOptions = { container: string; previous?: boolean; tailLines: number; limitBytes: number };

type Request = Omit<TransportCall, "timeoutMs" | "secret" | "path"> & {
  kind: string;
  path: string;
  /** Whether the request may be sent twice with the same result. */
  repeatable: boolean;
};

const pageSize = 500;
const retryPolicy: BackoffPolicy = { baseMs: 100, capMs: 5_000, jitter: 0.5 };
/**
 * The longest wait that the client accepts. If the server asks for a longer wait, the request fails, and the
 * work queue retries the key later.
 */
const longestRetryAfterMs = 10_000;

/**
 * Reads and writes Kubernetes objects as plain JSON. The client retries connection errors and overload (429,
 * 502, 503, 504, with `Retry-After`) a few times. After a 401 it reads the credentials again, and retries
 * once. Other failures throw an {@link ApiError}.
 */
export class ClusterClient {
  readonly #transport: Transport;
  /** The clock for timeouts, for pauses between attempts, and for watches. */
  readonly clock: Clock;
  readonly #random: () => number;
  readonly #observer: CallObserver | undefined;
  readonly #timeoutMs: number;
  readonly #attempts: number;
  readonly #skew = new ClockSkew();
  #inFlight = 0;

  constructor(connection: Connection, options: ClientOptions = {}) {
    this.clock = options.clock ?? systemClock;
    const onDate = (date: string) => this.#skew.record(date, this.clock.nowMs());
    this.#transport = new Transport(connection, { ...options, onDate });
    this.#random = options.random ?? Math.random;
    this.#observer = options.observer;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#attempts = options.attempts ?? 4;
  }

  /**
   * Milliseconds by which this machine's clock is ahead of the API server's clock, accurate to a few seconds.
   * A negative number means that this machine's clock is behind.
   */
  get clockAheadMs(): number {
    return this.#skew.aheadMs;
  }

  /** Number of requests in progress, including pauses before a retry. Open watches do not count. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Reads one object. Returns `undefined` if the object does not exist, or if its kind is not installed
   * (404).
   */
  async get(ref: Ref, options: ReadOptions = {}): Promise<KubernetesObject | undefined> {
    const path = pathOf(ref.kind, ref);
    try {
      return await this.#object({
        method: "GET",
        kind: ref.kind,
        path,
        repeatable: true,
        ...reading(options),
      });
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  /**
   * Returns whether the cluster has this kind (Kubernetes, "API discovery"). The request needs no permission.
   */
  async serves(kind: string): Promise<boolean> {
    const { apiVersion, plural } = resourceOf(kind);
    const path = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    try {
      const response = await this.#call({ method: "GET", kind, path, repeatable: true });
      const { resources } = response as { resources?: { name: string }[] };
      return resources?.some(({ name }) => name === plural) ?? false;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }

  /** Returns all objects of a kind, fetched in pages of `limit`. */
  async list(kind: string, options: ListOptions = {}): Promise<KubernetesObject[]> {
    return (await this.listAll(kind, { ...options, keep: (object) => object })).items;
  }

  /**
   * Lists objects like {@link list}, and also returns the resource version from which a watch can continue.
   * `keep` converts each object when its page arrives.
   */
  async listAll<T>(
    kind: string,
    options: ListOptions & { keep: (object: KubernetesObject) => T },
  ): Promise<{ items: T[]; resourceVersion: string }> {
    const items: T[] = [];
    let limit: number | undefined = options.limit ?? pageSize;
    let continueToken: string | undefined;
    for (;;) {
      try {
        const page = await this.#listPage(kind, options, { limit, continue: continueToken });
        for (const item of page.items) items.push(options.keep(item));
        if (page.continueToken === undefined) return { items, resourceVersion: page.resourceVersion };
        continueToken = page.continueToken;
      } catch (error) {
        // The server has discarded the state of these pages, so all objects are listed again without pages.
        if (!(error instanceof ApiError && error.status === 410) || continueToken === undefined) throw error;
        items.length = 0;
        limit = undefined;
        continueToken = undefined;
      }
    }
  }

  /**
   * Applies the fields of `manifest` (Kubernetes, "Server-Side Apply"). The object is created if it does not
   * exist.
   */
  async apply(manifest: KubernetesObject, options: ApplyOptions = {}): Promise<KubernetesObject> {
    return this.#apply(applyConfigurationOf(manifest), undefined, options);
  }

  /** Applies the subresource `status`. The request contains only the name, namespace, UID and `status`. */
  async applyStatus(manifest: KubernetesObject, options: ApplyOptions = {}): Promise<KubernetesObject> {
    const { name, namespace, uid } = manifest.metadata;
    const metadata = {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
    };
    const body = { apiVersion: manifest.apiVersion, kind: manifest.kind, metadata, status: manifest.status };
    return this.#apply(applyConfigurationOf(body), "status", options);
  }

  /** Creates an object. Throws `AlreadyExists` (409) if an object with this name exists. */
  async create(
    manifest: KubernetesObject,
    options: { signal?: AbortSignal } = {},
  ): Promise<KubernetesObject> {
    const { kind, metadata } = manifest;
    const path = pathOf(kind, { namespace: metadata.namespace });
    return this.#object({
      method: "POST",
      kind,
      path,
      body: manifest,
      repeatable: false,
      signal: options.signal,
    });
  }

  /**
   * Writes the whole object. Throws `Conflict` (409) if the object has changed since
   * `metadata.resourceVersion`.
   */
  async replace(
    manifest: KubernetesObject,
    options: { signal?: AbortSignal } = {},
  ): Promise<KubernetesObject> {
    const { kind, metadata } = manifest;
    const path = pathOf(kind, { namespace: metadata.namespace, name: metadata.name });
    return this.#object({
      method: "PUT",
      kind,
      path,
      body: manifest,
      repeatable: false,
      signal: options.signal,
    });
  }

  /**
   * Writes only the ownership of fields. Throws `Conflict` (409) if the object has changed since it was read.
   */
  async setManagedFields(
    live: KubernetesObject,
    managedFields: readonly ManagedFieldsEntry[],
  ): Promise<KubernetesObject> {
    const { kind, metadata } = live;
    const { namespace, name, uid, resourceVersion } = metadata;
    return this.#object({
      method: "PATCH",
      kind,
      path: pathOf(kind, { namespace, name }),
      contentType: "application/merge-patch+json",
      body: { metadata: { uid, resourceVersion, managedFields } },
      repeatable: false,
    });
  }

  /**
   * Changes single fields (RFC 6902). An operation `test` makes the patch fail if the object has changed, and
   * the API server then responds with status 422.
   */
  async patchFields(
    ref: Ref,
    operations: readonly PatchOperation[],
    manager: string,
  ): Promise<KubernetesObject> {
    return this.#object({
      method: "PATCH",
      kind: ref.kind,
      path: pathOf(ref.kind, ref),
      query: { fieldManager: manager, fieldValidation: "Strict" },
      contentType: "application/json-patch+json",
      body: operations,
      repeatable: false,
    });
  }

  /**
   * Deletes an object. Returns false if the object does not exist, or if an object with another UID than
   * `uid` has its name. Throws `Conflict` (409) if the object has changed since `resourceVersion`.
   */
  async remove(ref: Ref, options: RemoveOptions = {}): Promise<boolean> {
    const { uid, resourceVersion, propagation = "Background", signal } = options;
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    };
    const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: propagation, preconditions };
    const path = pathOf(ref.kind, ref);
    try {
      await this.#call({ method: "DELETE", kind: ref.kind, path, body, repeatable: true, signal });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return false;
      if (error.status !== 409 || uid === undefined) throw error;
      if ((await this.get(ref, signal === undefined ? {} : { signal }))?.metadata.uid !== uid) return false;
      throw error;
    }
  }

  /**
   * Returns the end of a container's log. It returns `undefined` before the first start, and for the previous
   * run of a container that has not restarted.
   */
  async logOf(pod: { namespace: string; name: string }, options: LogOptions): Promise<string | undefined> {
    const call: TransportCall = {
      method: "GET",
      path: pathOf("Pod", { ...pod, subresource: "log" }),
      query: { ...options, timestamps: true },
      accept: "*/*",
      timeoutMs: this.#timeoutMs,
    };
    try {
      return await this.#observed("Pod", call, () => this.#transport.sendForText(call));
    } catch (error) {
      if (error instanceof ApiError && [400, 404].includes(error.status)) return undefined;
      throw error;
    }
  }

  /**
   * Opens a watch in one attempt. Returns a stream with one JSON event in each line. `reflector.ts` handles
   * the end of the stream.
   */
  async openWatch(kind: string, options: ListWatchOptions): Promise<Readable> {
    const { resourceVersion, timeoutSeconds } = options;
    const call: TransportCall = {
      method: "GET",
      path: pathOf(kind, { namespace: options.namespace }),
      query: {
        ...selectorsOf(options),
        watch: true,
        allowWatchBookmarks: true,
        resourceVersion,
        timeoutSeconds,
      },
      timeoutMs: this.#timeoutMs,
      secret: kind === "Secret",
      shared: options.fieldSelector !== undefined,
      ...reading(options),
    };
    try {
      return await this.#observed(kind, call, () => this.#transport.open(call));
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.#transport.refreshCredentials();
      throw error;
    }
  }

  /** Closes all sockets. Requests in progress fail. */
  close(): void {
    this.#transport.close();
  }

  async #listPage(kind: string, options: ListOptions, page: QueryParameters): Promise<Page> {
    const path = pathOf(kind, { namespace: options.namespace });
    const query = { ...selectorsOf(options), ...page };
    return pageOf(
      kind,
      await this.#call({ method: "GET", kind, path, query, repeatable: true, ...reading(options, "List") }),
    );
  }

  async #apply(
    body: KubernetesObject,
    subresource: "status" | undefined,
    { manager = fieldManager, force = true, dryRun = false, signal }: ApplyOptions,
  ): Promise<KubernetesObject> {
    const { kind, metadata } = body;
    const where = { namespace: metadata.namespace, name: metadata.name };
    return this.#object({
      method: "PATCH",
      kind,
      path: pathOf(kind, subresource === undefined ? where : { ...where, subresource }),
      query: { fieldManager: manager, force, fieldValidation: "Strict", ...(dryRun && { dryRun: "All" }) },
      // JSON is valid YAML, and every version of the API server accepts this type for an apply.
      contentType: "application/apply-patch+yaml",
      body,
      repeatable: true,
      signal,
    });
  }

  async #object(request: Request): Promise<KubernetesObject> {
    return (await this.#call(request)) as KubernetesObject;
  }

  async #call(request: Request): Promise<unknown> {
    this.#inFlight += 1;
    try {
      return await this.#repeat(request);
    } finally {
      this.#inFlight -= 1;
    }
  }

  async #repeat(request: Request): Promise<unknown> {
    const { kind, repeatable, ...call } = request;
    const attempt: TransportCall = { ...call, timeoutMs: this.#timeoutMs, secret: kind === "Secret" };
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#observed(kind, attempt, () => this.#transport.send(attempt));
      } catch (error) {
        const waitMs =
          error instanceof ApiError ? this.#retryAfterMs(error, failures, repeatable) : undefined;
        if (waitMs === undefined) throw error;
        await sleep(this.clock, waitMs, call.signal);
      }
    }
  }

  /** Returns the milliseconds until the next attempt, or `undefined` if the request is not retried. */
  #retryAfterMs(error: ApiError, failures: number, repeatable: boolean): number | undefined {
    if (error.status === 401) {
      this.#transport.refreshCredentials();
      return failures === 1 ? 0 : undefined;
    }
    if (failures >= this.#attempts || !mayRepeat(error, repeatable)) return undefined;
    const askedMs = error.retryAfterMs ?? 0;
    if (askedMs > longestRetryAfterMs) return undefined;
    return askedMs + backoffMs(retryPolicy, failures, this.#random);
  }

  async #observed<T>(kind: string, call: TransportCall, run: () => Promise<T>): Promise<T> {
    const startMs = this.clock.monotonicMs();
    const observe = (status: number) => {
      this.#observer?.({ method: call.method, kind, status, tookMs: this.clock.monotonicMs() - startMs });
    };
    try {
      const response = await run();
      observe(200);
      return response;
    } catch (error) {
      observe(error instanceof ApiError ? error.status : 0);
      throw error;
    }
  }
}

/**
 * Returns whether the request may be retried. A request with status 429 had no effect, so it may always be
 * retried. After other failures, only a `repeatable` request may be retried.
 */
function mayRepeat(error: ApiError, repeatable: boolean): boolean {
  if (error.status === 429) return true;
  if (!repeatable) return false;
  if (error.status === 0) return error.reason === "Unreachable" || error.reason === "Timeout";
  return [500, 502, 503, 504].includes(error.status);
}

function reading(
  { signal, metadataOnly }: ReadOptions,
  form: "" | "List" = "",
): Pick<TransportCall, "signal" | "accept"> {
  return {
    signal,
    ...(metadataOnly && { accept: `application/json;as=PartialObjectMetadata${form};g=meta.k8s.io;v=v1` }),
  };
}

function selectorsOf({ labelSelector, fieldSelector }: Selection): QueryParameters {
  return { labelSelector, fieldSelector };
}

function pageOf(kind: string, response: unknown): Page {
  const { items, metadata } = response as {
    items?: KubernetesObject[] | null;
    metadata?: { resourceVersion?: string; continue?: string };
  };
  const { apiVersion } = resourceOf(kind);
  return {
    // The API server omits the kind of the items in a list.
    items: (items ?? []).map((item) => ({ ...item, apiVersion, kind })),
    resourceVersion: metadata?.resourceVersion ?? "",
    continueToken: metadata?.continue === "" ? undefined : metadata?.continue,
  };
}
