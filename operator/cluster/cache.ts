import { labels } from "../../config/contract/names.ts";
import type { Clock } from "../../lib/clock.ts";
import { LruCache } from "../../lib/lru-cache.ts";
import { managedSelector, podsSelector } from "../facts/child-metadata.ts";
import { foreignKinds, optionalKinds } from "../facts/kinds.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { ClusterClient } from "./client.ts";
import { ObjectStore } from "./object-store.ts";
import { OptionalKind } from "./optional-kind.ts";
import { type ChangeListener, Reflector, type ReflectorObserver, type WatchState } from "./reflector.ts";
import { type StoredObject, TemplateCompressor } from "./stored-object.ts";

/** Receives each change once, with the object as it is now, or as it was last seen. */
export type ObjectListener = (change: ObjectChange) => void;

export interface ObjectChange {
  readonly kind: string;
  readonly key: string;
  readonly object: KubernetesObject;
  readonly gone: boolean;
  /** The object as it was last reported, or known before that; undefined for a new one. */
  readonly before?: StoredObject | undefined;
}

export interface ClusterCacheOptions {
  readonly client: ClusterClient;
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[];
  readonly clock: Clock;
  readonly observer: ReflectorObserver;
  /** Receives a namespace that may not be read at the start. */
  readonly onForbidden?: (namespace: string) => void;
}

/** The watches of one namespace, or of all. */
interface Scope {
  readonly namespace: string | undefined;
  readonly reflectors: Reflector[];
  /** Not all objects are known yet, and no change is reported: a reconcile that does not see a Deployment would recreate it. */
  isIncomplete: boolean;
}

/** Deleted objects that are remembered: far more than there are responses in flight. */
const mostGone = 4096;

const ownerKinds = new Set(["TtsDeployment", "TtsModelPool"]);

/** The kinds that are followed as a whole, and which of their objects. */
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
 * The cluster as far as the operator looks at it, kept up to date by watches. What the operator has just written counts
 * at once, before the watch tells of it, so that two passes in a row do not do the same work twice.
 */
export class ClusterCache {
  readonly #options: ClusterCacheOptions;
  readonly #scopes: readonly Scope[];
  readonly #foreign: OptionalKind[] = [];
  readonly #listeners: ObjectListener[] = [];
  /** By `Kind/namespace/name`. */
  readonly #objects = new ObjectStore();
  readonly #packers = new Map<string, TemplateCompressor>();
  /** Owners as they were before a write of ours that no watch has reported yet. */
  readonly #untold = new Map<string, StoredObject>();
  /** Uids, the one deleted last at the end. The answer to a write may come after the word of the deletion, and brings nothing back. */
  readonly #gone = new LruCache<string, true>(mostGone);

  constructor(options: ClusterCacheOptions) {
    this.#options = options;
    const namespaces = options.namespaces.length > 0 ? options.namespaces : [undefined];
    this.#scopes = namespaces.map((namespace) => this.#scopeOf(namespace));
    for (const kind of foreignKinds) {
      for (const namespace of namespaces) {
        const scope = this.#scopes.find((one) => one.namespace === namespace);
        const onChange: ChangeListener = (...change) => this.#take(kind, scope, ...change);
        const selection = { labelSelector: managedSelector, namespace };
        this.#foreign.push(
          new OptionalKind(kind, {
            client: options.client,
            clock: options.clock,
            ...selection,
            ...this.#common(kind),
            onChange,
          }),
        );
      }
    }
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

  /** Adds a listener for changes from now on. */
  onChange(listener: ObjectListener): void {
    this.#listeners.push(listener);
  }

  /** Resolves when everything is known that may be read. */
  async start(): Promise<void> {
    const known = this.#scopes.map((scope) => this.#startScope(scope));
    await Promise.all([...known, ...this.#foreign.map((kind) => kind.find())]);
  }

  /** A namespace that was deleted takes the operator's role with it: it is as good as empty, until all of it can be read. */
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
    // rejects where the operator is stopped before
    synced.then(
      () => this.#openScope(scope),
      () => undefined,
    );
  }

  #openScope(scope: Scope): void {
    scope.isIncomplete = false;
    for (const kind of ownerKinds) {
      const found = [...this.all(kind)].filter(({ metadata }) => metadata.namespace === scope.namespace);
      for (const object of found) this.#tell({ kind, key: objectKey(object), object, gone: false });
    }
  }

  /** Watches that fail now. */
  failing(): Reflector[] {
    return this.#all().filter(({ isFailing }) => isFailing);
  }

  #all(): Reflector[] {
    const foreign = this.#foreign.flatMap(({ reflector }) => reflector ?? []);
    return [...this.#scopes.flatMap(({ reflectors }) => reflectors), ...foreign];
  }

  /** Whether the cluster has this kind of another product; asks now and then where it had not. */
  async isInstalled(kind: string): Promise<boolean> {
    const found = await Promise.all(
      this.#foreign.filter((one) => one.kind === kind).map((one) => one.find()),
    );
    return found.some((installed) => installed);
  }

  watches(): WatchState[] {
    return this.#all().map(({ state }) => state);
  }

  async stop(): Promise<void> {
    await Promise.all(
      [...this.#scopes.flatMap(({ reflectors }) => reflectors), ...this.#foreign].map((one) => one.stop()),
    );
  }

  get(kind: string, key: string): KubernetesObject | undefined {
    return this.#objects.get(`${kind}/${key}`);
  }

  /** Every object of a kind that is followed, one by one. */
  all(kind: string): Generator<KubernetesObject> {
    return this.#objects.all(`${kind}/`);
  }

  /** Objects of a kind that share a group, see `groupsOf`. */
  group(kind: string, group: string): KubernetesObject[] {
    return this.#objects.group(`${kind}/${group}`);
  }

  /** The ids (`Kind/namespace/name`) of the same objects. No object is decompressed for them. */
  ids(kind: string, group: string): string[] {
    return this.#objects.ids(`${kind}/${group}`);
  }

  /** Stores the response of the API server to a write of ours. */
  written(object: KubernetesObject): void {
    const id = `${object.kind}/${objectKey(object)}`;
    const held = this.#packerOf(object.kind).hold(object);
    if (this.#isGone(held)) return;
    const known = this.#objects.held(id);
    if (!isNewer(held, known)) return;
    if (known !== undefined && ownerKinds.has(object.kind) && !this.#untold.has(id))
      this.#untold.set(id, known);
    this.#objects.put(id, held);
  }

  /** The same object as it is read now: its form may have changed while its version did not. */
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
    const told = this.#untold.get(id);
    this.#untold.delete(id);
    if (held === undefined) {
      const known = this.#objects.get(id);
      if (known === undefined) return;
      this.#objects.drop(id);
      this.#rememberGone(known);
      if (scope?.isIncomplete === true) return;
      this.#tell({ kind, key, object: known, gone: true });
      return;
    }
    // an object that lost its label was reported as deleted, and may get it again
    if (held.uid !== undefined) this.#gone.delete(held.uid);
    const known = this.#objects.held(id);
    if (isListed === true || isNewer(held, known) || held.uid !== known?.uid) this.#objects.put(id, held);
    // decompression takes time, so do it only for listeners
    if (this.#listeners.length > 0 && scope?.isIncomplete !== true)
      this.#tell({ kind, key, object: object ?? held.object, gone: false, before: told ?? known });
  }

  #isGone({ uid }: StoredObject): boolean {
    return uid !== undefined && this.#gone.has(uid);
  }

  #rememberGone({ metadata: { uid } }: KubernetesObject): void {
    if (uid !== undefined) this.#gone.set(uid, true);
  }

  #tell(change: Parameters<ObjectListener>[0]): void {
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

/** Groups objects by their TtsDeployment, and pods by their pool too. A pool is grouped by its spec, which is immutable, unlike a label. */
function groupsOf(object: KubernetesObject): string[] {
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
