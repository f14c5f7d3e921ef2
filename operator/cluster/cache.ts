import { labels } from "../../config/contract/names.ts";
import type { Clock } from "../../lib/clock.ts";
import { LruCache } from "../../lib/lru-cache.ts";
import { cachesSelector, managedSelector, podsSelector } from "../facts/child-metadata.ts";
import { cacheKinds, foreignKinds, optionalKinds } from "../facts/kinds.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { TtsModelPool } from "../facts/observed.ts";
import type { ClusterClient, Selection } from "./client.ts";
import { ObjectStore } from "./object-store.ts";
import { OptionalKind } from "./optional-kind.ts";
import { type ChangeListener, Reflector, type ReflectorObserver, type WatchState } from "./reflector.ts";
import { type StoredObject, TemplateCompressor } from "./stored-object.ts";

/** Receives each change once, with the current object, or with the last known object if it was deleted. */
export type ObjectListener = (change: ObjectChange) => void;

export interface ObjectChange {
  readonly kind: string;
  readonly key: string;
  readonly object: KubernetesObject;
  readonly gone: boolean;
  /** The previously reported object, or undefined for a new object. */
  readonly before?: StoredObject | undefined;
}

export interface ClusterCacheOptions {
  readonly client: ClusterClient;
  /** The watched namespaces. An empty list means all namespaces. */
  readonly namespaces: readonly string[];
  readonly clock: Clock;
  readonly observer: ReflectorObserver;
  /** Called at the start with each namespace that the operator has no permission to read. */
  readonly onForbidden?: (namespace: string) => void;
}

/** The watches of one namespace, or of all namespaces. */
interface Scope {
  readonly namespace: string | undefined;
  readonly reflectors: Reflector[];
  /**
   * True until all objects of the namespace are known. Until then no change is reported, because a reconcile
   * would recreate objects that are not known yet.
   */
  isIncomplete: boolean;
}

/**
 * The number of deleted objects that the cache remembers. It is far larger than the number of requests in
 * flight.
 */
const mostGone = 4096;

const ownerKinds = new Set(["TtsDeployment", "TtsModelPool", "TtsModelCache"]);

/** The watched kinds, with the label selector of their objects. */
const followed: readonly { kind: string; labelSelector?: string; keepManagedFields: boolean }[] = [
  { kind: "TtsDeployment", keepManagedFields: true },
  { kind: "TtsModelPool", keepManagedFields: true },
  ...[
    ...["ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Service", "Deployment"],
    ...optionalKinds,
  ].map((kind) => ({ kind, labelSelector: managedSelector, keepManagedFields: true })),
  { kind: "Pod", labelSelector: podsSelector, keepManagedFields: false },
];

/**
 * The objects that the operator watches. After a write of the operator, the cache stores the object before
 * the watch reports it. The next reconcile therefore does not write the object again.
 */
export class ClusterCache {
  readonly #options: ClusterCacheOptions;
  readonly #scopes: readonly Scope[];
  readonly #foreign: OptionalKind[] = [];
  /** Kinds whose watches start when a reconcile first needs them. */
  readonly #onDemand: OptionalKind[] = [];
  readonly #listeners: ObjectListener[] = [];
  /** The objects, by `Kind/namespace/name`. */
  readonly #objects = new ObjectStore();
  readonly #packers = new Map<string, TemplateCompressor>();
  /**
   * The versions of owners before a write of the operator. An entry is removed when the watch reports the
   * write.
   */
  readonly #unreported = new Map<string, StoredObject>();
  /**
   * The UIDs of deleted objects. The response to a write may arrive after the watch has reported the
   * deletion, and must not restore the object.
   */
  readonly #gone = new LruCache<string, true>(mostGone);

  constructor(options: ClusterCacheOptions) {
    this.#options = options;
    const namespaces = options.namespaces.length > 0 ? options.namespaces : [undefined];
    this.#scopes = namespaces.map((namespace) => this.#scopeOf(namespace));
    for (const kind of foreignKinds) {
      for (const namespace of namespaces)
        this.#foreign.push(this.#optionalKind(kind, { labelSelector: managedSelector, namespace }));
    }
    for (const namespace of namespaces) {
      this.#foreign.push(this.#optionalKind("TtsModelCache", { namespace }));
      for (const kind of cacheKinds)
        this.#onDemand.push(this.#optionalKind(kind, { labelSelector: cachesSelector, namespace }));
    }
    // An operator that watches single namespaces has no permission to read cluster-scoped objects.
    if (!this.isNamespaced) this.#foreign.push(this.#optionalKind("TtsClass", {}));
  }

  /** Whether the operator watches single namespaces. */
  get isNamespaced(): boolean {
    return this.#options.namespaces.length > 0;
  }

  #optionalKind(kind: string, selection: Selection): OptionalKind {
    const scope = this.#scopes.find((one) => one.namespace === selection.namespace);
    return new OptionalKind(kind, {
      client: this.#options.client,
      clock: this.#options.clock,
      ...selection,
      ...this.#common(kind),
      onChange: (...change) => this.#take(kind, scope, ...change),
    });
  }

  #scopeOf(namespace: string | undefined): Scope {
    const scope: Scope = { namespace, reflectors: [], isIncomplete: false };
    for (const { kind, ...selection } of followed) {
      const watching = { ...selection, ...this.#common(kind), namespace };
      const reflector = new Reflector(this.#options.client, kind, watching);
      reflector.onChange((...change) => this.#take(kind, scope, ...change));
      scope.reflectors.push(reflector);
    }
    return scope;
  }

  /** Adds a listener for later changes. */
  onChange(listener: ObjectListener): void {
    this.#listeners.push(listener);
  }

  /** Starts the watches. Resolves when all objects are known that the operator has permission to read. */
  async start(): Promise<void> {
    const known = this.#scopes.map((scope) => this.#startScope(scope));
    await Promise.all([...known, ...this.#foreign.map((kind) => kind.find())]);
  }

  /**
   * Starts the watches of a scope. The operator has no permission in a namespace that was deleted. Such a
   * namespace counts as empty until all of its objects can be read.
   */
  async #startScope(scope: Scope): Promise<void> {
    const { namespace, reflectors } = scope;
    const synced = Promise.all(reflectors.map((reflector) => reflector.start().synced()));
    if (namespace === undefined) {
      await synced;
      return;
    }
    const forbidden = Promise.all(reflectors.map((reflector) => reflector.forbidden()));
    const end = await Promise.race([synced.then(() => "synced"), forbidden.then(() => "forbidden")]);
    if (end === "synced") return;
    scope.isIncomplete = true;
    this.#options.onForbidden?.(namespace);
    // The rejection needs no handling, because the promise rejects only if the operator stops.
    synced.then(
      () => this.#openScope(scope),
      () => undefined,
    );
  }

  #openScope(scope: Scope): void {
    scope.isIncomplete = false;
    for (const kind of ownerKinds) {
      const found = [...this.all(kind)].filter(({ metadata }) => metadata.namespace === scope.namespace);
      for (const object of found) this.#notify({ kind, key: objectKey(object), object, gone: false });
    }
  }

  /** Returns the watches that failed in their last attempt. */
  failing(): Reflector[] {
    return this.#all().filter(({ isFailing }) => isFailing);
  }

  #all(): Reflector[] {
    const foreign = [...this.#foreign, ...this.#onDemand].flatMap(({ reflector }) => reflector ?? []);
    return [...this.#scopes.flatMap(({ reflectors }) => reflectors), ...foreign];
  }

  /** Starts the watches of the children of TtsModelCaches. Resolves when their objects are known. */
  async followCacheChildren(): Promise<void> {
    await Promise.all(this.#onDemand.map((kind) => kind.find()));
  }

  /**
   * Returns whether a kind of another product is installed. If it is not installed, the operator checks the
   * cluster again at intervals.
   */
  async isInstalled(kind: string): Promise<boolean> {
    const found = await Promise.all(
      this.#foreign.filter((one) => one.kind === kind).map((one) => one.find()),
    );
    return found.some((installed) => installed);
  }

  /**
   * Returns whether the cache contains every object of a kind that may not be installed. This is not the case
   * while the operator has no permission to read the kind.
   */
  knowsAll(kind: string): boolean {
    return this.#foreign.filter((one) => one.kind === kind).every(({ isComplete }) => isComplete);
  }

  watches(): WatchState[] {
    return this.#all().map(({ state }) => state);
  }

  async stop(): Promise<void> {
    await Promise.all(
      [...this.#scopes.flatMap(({ reflectors }) => reflectors), ...this.#foreign, ...this.#onDemand].map(
        (one) => one.stop(),
      ),
    );
  }

  get(kind: string, key: string): KubernetesObject | undefined {
    return this.#objects.get(`${kind}/${key}`);
  }

  /** Yields every object of a watched kind. */
  all(kind: string): Generator<KubernetesObject> {
    return this.#objects.all(`${kind}/`);
  }

  /** Returns the objects of a kind in a group (see `groupsOf`). */
  group(kind: string, group: string): KubernetesObject[] {
    return this.#objects.group(`${kind}/${group}`);
  }

  /**
   * Returns the IDs (`Kind/namespace/name`) of the objects of a kind in a group, without decompressing the
   * objects.
   */
  ids(kind: string, group: string): string[] {
    return this.#objects.ids(`${kind}/${group}`);
  }

  /** Stores the response of the API server to a write of the operator. */
  written(object: KubernetesObject): void {
    const id = `${object.kind}/${objectKey(object)}`;
    const held = this.#packerOf(object.kind).hold(object);
    if (this.#isGone(held)) return;
    const known = this.#objects.held(id);
    if (!isNewer(held, known)) return;
    if (known !== undefined && ownerKinds.has(object.kind) && !this.#unreported.has(id))
      this.#unreported.set(id, known);
    this.#objects.put(id, held);
  }

  /**
   * Stores an object that the operator read from the API server again. After an upgrade of the CRDs, the
   * content of an object may change without a new version.
   */
  readAgain(object: KubernetesObject): void {
    const id = `${object.kind}/${objectKey(object)}`;
    const held = this.#packerOf(object.kind).hold(object);
    if (this.#isGone(held)) return;
    if (!isNewer(this.#objects.held(id) ?? held, held)) this.#objects.put(id, held);
  }

  #take(
    kind: string,
    scope: Scope | undefined,
    ...[key, held, object, isListed]: Parameters<ChangeListener>
  ): void {
    const id = `${kind}/${key}`;
    const reported = this.#unreported.get(id);
    this.#unreported.delete(id);
    if (held === undefined) {
      const known = this.#objects.get(id);
      if (known === undefined) return;
      this.#objects.drop(id);
      this.#rememberGone(known);
      if (scope?.isIncomplete === true) return;
      this.#notify({ kind, key, object: known, gone: true });
      return;
    }
    // The watch also reports an object as deleted if the object loses its label. It may get the label again.
    if (held.uid !== undefined) this.#gone.delete(held.uid);
    const known = this.#objects.held(id);
    if (isListed === true || isNewer(held, known) || held.uid !== known?.uid) this.#objects.put(id, held);
    // Decompression takes time, so the object is decompressed only if a listener exists.
    if (this.#listeners.length > 0 && scope?.isIncomplete !== true)
      this.#notify({ kind, key, object: object ?? held.object, gone: false, before: reported ?? known });
  }

  #isGone({ uid }: StoredObject): boolean {
    return uid !== undefined && this.#gone.has(uid);
  }

  #rememberGone({ metadata: { uid } }: KubernetesObject): void {
    if (uid !== undefined) this.#gone.set(uid, true);
  }

  #notify(change: Parameters<ObjectListener>[0]): void {
    for (const listener of this.#listeners) listener(change);
  }

  #common(kind: string) {
    const { observer } = this.#options;
    return { observer, hold: this.#packerOf(kind).hold };
  }

  #packerOf(kind: string): TemplateCompressor {
    const packer = this.#packers.get(kind) ?? new TemplateCompressor(groupsOf);
    this.#packers.set(kind, packer);
    return packer;
  }
}

const groupedKinds = new Set(["Pod", "TtsModelPool", ...optionalKinds, ...foreignKinds]);

/** Returns the group of the pools that name a TtsModelCache, and of the children of the cache. */
export function cacheGroup(key: string): string {
  return `cache:${key}`;
}

/** The group of all TtsClasses. */
export const everyClass = "all";

/**
 * Returns the groups of an object: objects are grouped by TtsDeployment, and pods also by pool. The group of
 * a TtsModelPool comes from its spec, which is immutable, and not from its labels. TtsDeployments are grouped
 * by namespace. Children of a TtsModelCache, and the pools that name it, have a group of their own.
 */
function groupsOf(object: KubernetesObject): string[] {
  const { namespace } = object.metadata;
  if (object.kind === "TtsDeployment") return [`TtsDeployment/${namespace}`];
  if (object.kind === "TtsClass") return [`TtsClass/${everyClass}`];
  return [...cacheGroups(object), ...deploymentGroups(object)];
}

/** Returns the group of the TtsModelCache that an object belongs to, or that a pool names. */
function cacheGroups(object: KubernetesObject): string[] {
  const { namespace, labels: found = {} } = object.metadata;
  const { cache } = (object as Partial<TtsModelPool>).spec ?? {};
  const name = object.kind === "TtsModelPool" ? cache?.name : found[labels.modelCache];
  return name === undefined ? [] : [`${object.kind}/${cacheGroup(`${namespace}/${name}`)}`];
}

function deploymentGroups(object: KubernetesObject): string[] {
  const { namespace, labels: found = {} } = object.metadata;
  if (!groupedKinds.has(object.kind)) return [];
  const { deployment: named } = (object as { readonly spec?: { readonly deployment?: string } }).spec ?? {};
  const deployment = object.kind === "TtsModelPool" ? named : found[labels.deployment];
  if (deployment === undefined) return [];
  const group = `${object.kind}/${namespace}/${deployment}`;
  return object.kind === "Pod" ? [`${group}/${found[labels.pool] ?? ""}`] : [group];
}

function isNewer(object: StoredObject, known: StoredObject | undefined): boolean {
  if (known === undefined) return true;
  return Number(object.resourceVersion) > Number(known.resourceVersion);
}
