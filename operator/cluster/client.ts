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

/** Called for every attempt, for metrics. `status` is 0 when no response arrived. Must not throw. */
export type CallObserver = (call: { method: string; kind: string; status: number; tookMs: number }) => void;

export type ClientOptions = TransportOptions & {
  random?: () => number;
  observer?: CallObserver;
  /** Per attempt. */
  timeoutMs?: number;
  /** Attempts in all, for calls that may be repeated. */
  attempts?: number;
};

export type Selection = { namespace?: string | undefined; labelSelector?: string; fieldSelector?: string };
export type ReadOptions = {
  signal?: AbortSignal | undefined;
  /** Only `metadata` is fetched (`PartialObjectMetadata`). */
  metadataOnly?: boolean;
};
export type ListOptions = Selection & ReadOptions & { limit?: number };
export type ListWatchOptions = Selection &
  ReadOptions & { resourceVersion: string | undefined; timeoutSeconds: number };
type Page = { items: KubernetesObject[]; resourceVersion: string; continueToken: string | undefined };

export type ApplyOptions = {
  /** Field manager; the operator's own unless given. */
  manager?: string;
  /** Takes over fields of other managers whose value differs (default); else that is a conflict. */
  force?: boolean;
  /** Have it judged, and change nothing. */
  dryRun?: boolean;
  signal?: AbortSignal;
};

export type RemoveOptions = {
  propagation?: "Foreground" | "Background" | "Orphan";
  /** Delete only this very object, not one of the same name made since. */
  uid?: string;
  /** Delete only if nothing changed since. */
  resourceVersion?: string;
  signal?: AbortSignal;
};

export type LogOptions = { container: string; previous?: boolean; tailLines: number; limitBytes: number };

type Request = Omit<TransportCall, "timeoutMs" | "secret" | "path"> & {
  kind: string;
  path: string;
  /** May be sent twice: a repeated answer means the same as the first. */
  repeatable: boolean;
};

const pageSize = 500;
const retryPolicy: BackoffPolicy = { baseMs: 100, capMs: 5_000, jitter: 0.5 };
/** A longer wait belongs to the queue, which can do other work meanwhile. */
const longestRetryAfterMs = 10_000;

/**
 * Reads and writes Kubernetes objects as plain JSON. Repeats what failed on the way or was refused for load (429, 502, 503,
 * 504, `Retry-After` honoured), a few times; throws {@link ApiError} for the rest.
 */
export class ClusterClient {
  readonly #transport: Transport;
  /** For deadlines of requests and pauses between them, and for watches. */
  readonly clock: Clock;
  readonly #random: () => number;
  readonly #observer: CallObserver | undefined;
  readonly #timeoutMs: number;
  readonly #attempts: number;
  readonly #skew = new ClockSkew();
  #inFlight = 0;

  constructor(connection: Connection, options: ClientOptions = {}) {
    this.clock = options.clock ?? systemClock;
    const onDate = (date: string) => this.#skew.tell(date, this.clock.nowMs());
    this.#transport = new Transport(connection, { ...options, onDate });
    this.#random = options.random ?? Math.random;
    this.#observer = options.observer;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#attempts = options.attempts ?? 4;
  }

  /** How far this machine's clock is ahead of the API server's, in milliseconds, to a few seconds; negative: behind. */
  get clockAheadMs(): number {
    return this.#skew.aheadMs;
  }

  /** Calls under way, the pauses before repeating one included; open watches are none. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** `undefined` when there is no such object (404), and also where its kind is not installed. */
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

  /** Whether the cluster has this kind (Kubernetes, "API discovery"); everybody may ask that. */
  async serves(kind: string): Promise<boolean> {
    const { apiVersion, plural } = resourceOf(kind);
    const path = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    try {
      const answer = await this.#call({ method: "GET", kind, path, repeatable: true });
      const { resources } = answer as { resources?: { name: string }[] };
      return resources?.some(({ name }) => name === plural) ?? false;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }

  /** All objects of a kind, fetched in pages of `limit`. */
  async list(kind: string, options: ListOptions = {}): Promise<KubernetesObject[]> {
    return (await this.listAll(kind, { ...options, keep: (object) => object })).items;
  }

  /** The same as {@link list}, with the resource version to watch from. `keep` converts each object when its page arrives. */
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
        // The pages belong to a state that the server has forgotten meanwhile: once more from the start, in one piece.
        if (!(error instanceof ApiError && error.status === 410) || continueToken === undefined) throw error;
        items.length = 0;
        limit = undefined;
        continueToken = undefined;
      }
    }
  }

  /** Server-side apply (Kubernetes, "Server-Side Apply"): creates or changes exactly the named fields, as `tts-operator`. */
  async apply(manifest: KubernetesObject, options: ApplyOptions = {}): Promise<KubernetesObject> {
    return this.#apply(applyConfigurationOf(manifest), undefined, options);
  }

  /** The same for `/status`; everything but names and `status` is left out. */
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

  /** Throws `AlreadyExists` (409) when the name is taken. */
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

  /** Writes the whole object; throws `Conflict` (409) when it changed since `metadata.resourceVersion`. */
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

  /** Writes who owns which fields, and nothing else; throws `Conflict` (409) when the object changed since it was read. */
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
   * Deletes. False when there was nothing to delete: it is gone, or with `uid` given another object has its name now.
   * Throws `Conflict` (409) when it changed since `resourceVersion`.
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

  /** The end of a container's log; `undefined` when it has none, as before its first start or for an earlier run that there was not. */
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

  /** An open watch: bytes, a JSON event per line; see `watch.ts`, which knows what to do when it ends. One attempt. */
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

  /** Closes all sockets. Calls under way fail. */
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
      // JSON is YAML, and the only type that a server of any age takes for an apply.
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

  /** How long to wait before trying once more, or `undefined` to give up. */
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
    const tell = (status: number) => {
      this.#observer?.({ method: call.method, kind, status, tookMs: this.clock.monotonicMs() - startMs });
    };
    try {
      const answer = await run();
      tell(200);
      return answer;
    } catch (error) {
      tell(error instanceof ApiError ? error.status : 0);
      throw error;
    }
  }
}

/** 429 was not carried out, so anything may be repeated; the others only where twice is as good as once. */
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

function pageOf(kind: string, answer: unknown): Page {
  const { items, metadata } = answer as {
    items?: KubernetesObject[] | null;
    metadata?: { resourceVersion?: string; continue?: string };
  };
  const { apiVersion } = resourceOf(kind);
  return {
    // Items of a list come without their kind.
    items: (items ?? []).map((item) => ({ ...item, apiVersion, kind })),
    resourceVersion: metadata?.resourceVersion ?? "",
    continueToken: metadata?.continue === "" ? undefined : metadata?.continue,
  };
}
