import { labels } from "../config/contract/names.ts";
import type { ClusterClient } from "./cluster/client.ts";
import { ForeignKind } from "./cluster/foreign.ts";
import { keyOf, Reflector, type ReflectorObserver, watchOne } from "./cluster/watch.ts";
import { foreignKinds, optionalKinds } from "./desired/children.ts";
import { managedSelector, podsSelector } from "./desired/metadata.ts";
import type { Clock } from "./loop/clock.ts";
import type { Manifest, Ref } from "./manifest.ts";

/** What a change may concern: told once per change, with the object as it is now or as it was last seen. */
export type ViewListener = (change: { kind: string; key: string; object: Manifest; gone: boolean }) => void;

export interface ViewOptions {
  readonly client: ClusterClient;
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[];
  readonly clock: Clock;
  readonly observer: ReflectorObserver;
}

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
 * Kinds of which objects are followed by name alone: Secrets, since nobody should list them, and those that a cluster may not have. A
 * pass reads them from the API server.
 */
const followedByName = new Set(["Secret", "HTTPRoute"]);

/**
 * The cluster as far as the operator looks at it, kept up to date by watches. What the operator has just written counts
 * at once, before the watch tells of it, so that two passes in a row do not do the same work twice.
 */
export class ClusterView {
  readonly #options: ViewOptions;
  readonly #reflectors: Reflector[] = [];
  readonly #foreign: ForeignKind[] = [];
  readonly #listeners: ViewListener[] = [];
  /** By `Kind/namespace/name`. */
  readonly #objects = new Map<string, Manifest>();
  readonly #groups = new Map<string, Map<string, Manifest>>();
  readonly #named = new Map<string, { reflector: Reflector; followers: Set<string> }>();
  readonly #namedBy = new Map<string, readonly string[]>();
  #stopped = false;

  constructor(options: ViewOptions) {
    this.#options = options;
    const namespaces = options.namespaces.length > 0 ? options.namespaces : [undefined];
    for (const { kind, ...selection } of followed) {
      for (const namespace of namespaces) {
        const reflector = new Reflector(options.client, kind, { ...selection, ...this.#common(), namespace });
        reflector.onChange((key, object) => this.#take(kind, key, object));
        this.#reflectors.push(reflector);
      }
    }
    for (const kind of foreignKinds) {
      for (const namespace of namespaces) {
        const onChange = (key: string, object: Manifest | undefined) => this.#take(kind, key, object);
        const selection = { labelSelector: managedSelector, namespace };
        this.#foreign.push(
          new ForeignKind(kind, { client: options.client, ...selection, ...this.#common(), onChange }),
        );
      }
    }
  }

  onChange(listener: ViewListener): void {
    this.#listeners.push(listener);
  }

  /** Resolves when everything is known. */
  async start(): Promise<void> {
    const known = this.#reflectors.map((reflector) => reflector.start().synced());
    await Promise.all([...known, ...this.#foreign.map((kind) => kind.find())]);
  }

  /** Whether the cluster has this kind of another product; asks now and then where it had not. */
  async isInstalled(kind: string): Promise<boolean> {
    const found = await Promise.all(
      this.#foreign.filter((one) => one.kind === kind).map((one) => one.find()),
    );
    return found.some((installed) => installed);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const named = [...this.#named.values()].map(({ reflector }) => reflector);
    await Promise.all([...this.#reflectors, ...this.#foreign, ...named].map((one) => one.stop()));
  }

  get(kind: string, key: string): Manifest | undefined {
    return this.#objects.get(`${kind}/${key}`);
  }

  /** Every object of a kind that is followed. */
  all(kind: string): Manifest[] {
    return [...this.#objects.values()].filter((object) => object.kind === kind);
  }

  /** Objects of a kind that share a group, see `groupOf`. */
  group(kind: string, group: string): Manifest[] {
    return [...(this.#groups.get(`${kind}/${group}`)?.values() ?? [])];
  }

  /** What the API server answered to a write of ours. */
  written(object: Manifest): void {
    const key = `${object.kind}/${keyOf(object)}`;
    if (followedByName.has(object.kind) || !isNewer(object, this.#objects.get(key))) return;
    this.#store(key, object);
  }

  /** The same object as it is read now: its form may have changed while its version did not. */
  readAgain(object: Manifest): void {
    const key = `${object.kind}/${keyOf(object)}`;
    if (!isNewer(this.#objects.get(key) ?? object, object)) this.#store(key, object);
  }

  /** Watches the named objects for as long as `follower` names them. Of Secrets only metadata is fetched. */
  followNamed(follower: string, refs: readonly Ref[]): void {
    if (this.#stopped) return;
    const keys = refs.map(nameOf);
    for (const ref of refs) this.#followOne(follower, ref);
    for (const key of this.#namedBy.get(follower) ?? [])
      if (!keys.includes(key)) this.#unfollow(follower, key);
    if (keys.length === 0) this.#namedBy.delete(follower);
    else this.#namedBy.set(follower, keys);
  }

  /** Who follows the object of this kind and key by its name. */
  followersOf(kind: string, key: string): string[] {
    return [...(this.#named.get(`${kind}/${key}`)?.followers ?? [])];
  }

  #followOne(follower: string, ref: Ref): void {
    const key = nameOf(ref);
    const { apiVersion, kind } = ref;
    const known = this.#named.get(key);
    if (known !== undefined) {
      known.followers.add(follower);
      return;
    }
    const reflector = watchOne(this.#options.client, ref, this.#common());
    this.#named.set(key, { reflector, followers: new Set([follower]) });
    reflector.onChange((_key, object) => {
      const { name, namespace = "" } = ref;
      const last = object ?? { apiVersion, kind, metadata: { name, namespace } };
      this.#tell({ kind, key: keyOf(ref), object: last, gone: object === undefined });
    });
    reflector.start();
  }

  #unfollow(follower: string, key: string): void {
    const known = this.#named.get(key);
    known?.followers.delete(follower);
    if (known === undefined || known.followers.size > 0) return;
    this.#named.delete(key);
    // Nothing waits for its end: it tells no change to anybody from now on.
    void known.reflector.stop();
  }

  #take(kind: string, key: string, object: Manifest | undefined): void {
    const id = `${kind}/${key}`;
    const known = this.#objects.get(id);
    if (object === undefined) {
      if (known === undefined) return;
      this.#drop(id, known);
      this.#tell({ kind, key, object: known, gone: true });
      return;
    }
    if (isNewer(object, known) || object.metadata.uid !== known?.metadata.uid) this.#store(id, object);
    this.#tell({ kind, key, object, gone: false });
  }

  #store(id: string, object: Manifest): void {
    const known = this.#objects.get(id);
    if (known !== undefined) this.#drop(id, known);
    this.#objects.set(id, object);
    for (const group of groupsOf(object)) {
      const members = this.#groups.get(group) ?? new Map<string, Manifest>();
      this.#groups.set(group, members.set(id, object));
    }
  }

  #drop(id: string, object: Manifest): void {
    this.#objects.delete(id);
    for (const group of groupsOf(object)) {
      const members = this.#groups.get(group);
      members?.delete(id);
      if (members?.size === 0) this.#groups.delete(group);
    }
  }

  #tell(change: Parameters<ViewListener>[0]): void {
    for (const listener of this.#listeners) listener(change);
  }

  #common() {
    return { clock: this.#options.clock, observer: this.#options.observer };
  }
}

const groupedKinds = new Set(["Pod", "TtsModelPool", ...optionalKinds, ...foreignKinds]);

/** By the TtsDeployment that they belong to, and pods by their pool too. */
function groupsOf(object: Manifest): string[] {
  const { namespace, labels: found = {} } = object.metadata;
  if (!groupedKinds.has(object.kind)) return [];
  const deployment = found[labels.deployment];
  if (deployment === undefined) return [];
  const group = `${object.kind}/${namespace}/${deployment}`;
  return object.kind === "Pod" ? [`${group}/${found[labels.pool] ?? ""}`] : [group];
}

function nameOf(ref: Ref): string {
  return `${ref.kind}/${keyOf(ref)}`;
}

function isNewer(object: Manifest, known: Manifest | undefined): boolean {
  if (known === undefined) return true;
  return Number(object.metadata.resourceVersion) > Number(known.metadata.resourceVersion);
}
