import { managedSelector } from "../facts/child-metadata.ts";
import type { KubernetesObject, Ref } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { ClusterClient } from "./client.ts";
import { Reflector, type ReflectorObserver, type WatchState, watchOne } from "./reflector.ts";

export interface SecretsOptions {
  readonly client: ClusterClient;
  /** The watched namespaces. An empty list means all namespaces. */
  readonly namespaces: readonly string[];
  readonly observer: ReflectorObserver;
}

/**
 * Receives the key (`namespace/name`) of a Secret that has changed since it was read, and the Secret's
 * metadata, or `undefined` if the Secret was deleted.
 */
type SecretListener = (key: string, secret: KubernetesObject | undefined) => void;

/** A fact that was derived from the content of a Secret. */
export interface SecretReading<T> {
  readonly fact: T;
  /** The Secret, if this call read it. It is only for the current reconcile, and is not kept. */
  readonly read: { readonly secret: KubernetesObject | undefined } | undefined;
}

/**
 * The UID and the resource version of a Secret. A recreated Secret may have the resource version of an
 * earlier Secret, but not its UID.
 */
type Version = string;
const absent: Version = "absent";
const beingRead: Version = "being read";

interface Named {
  readonly reflector: Reflector;
  readonly followers: Set<string>;
}

/**
 * Reads Secrets by name when a reconcile needs them. It keeps only facts that were derived from a Secret, and
 * reads a Secret again only after a change. Watches of metadata report changes: one watch for each Secret
 * that users name, and one watch without a list for all Secrets that the operator created.
 */
export class Secrets {
  readonly #options: SecretsOptions;
  readonly #own: Reflector[];
  readonly #named = new Map<string, Named>();
  readonly #namedBy = new Map<string, readonly string[]>();
  /** The version that a watch last reported, by key of the Secret. */
  readonly #versions = new Map<string, Version>();
  /**
   * The version that the followers of a Secret have read, or that was last reported to them, by key of the
   * Secret.
   */
  readonly #reported = new Map<string, Version>();
  /** The facts by key of the Secret, and by use. All facts of a Secret are from one version. */
  readonly #facts = new Map<string, { version: Version; uses: Map<string, unknown> }>();
  readonly #listeners: SecretListener[] = [];
  #stopped = false;

  constructor(options: SecretsOptions) {
    this.#options = options;
    const namespaces = options.namespaces.length > 0 ? options.namespaces : [undefined];
    this.#own = namespaces.map((namespace) => {
      const selection = { namespace, labelSelector: managedSelector, neverList: true };
      const reflector = new Reflector(options.client, "Secret", { ...selection, ...this.#common() });
      reflector.onChange((key, held) => this.#take(key, held?.object));
      reflector.onBegin(() => this.#doubtOwn(namespace));
      return reflector;
    });
  }

  onChange(listener: SecretListener): void {
    this.#listeners.push(listener);
  }

  start(): void {
    for (const reflector of this.#own) reflector.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#reflectors().map((one) => one.stop()));
  }

  /** Returns the watches that failed in their last attempt. */
  failing(): Reflector[] {
    return this.#reflectors().filter(({ isFailing }) => isFailing);
  }

  watches(): WatchState[] {
    return this.#reflectors().map(({ state }) => state);
  }

  #reflectors(): Reflector[] {
    return [...this.#own, ...[...this.#named.values()].map(({ reflector }) => reflector)];
  }

  /**
   * Watches the Secrets in `refs` for `follower`, and stops watching Secrets that no follower names any more.
   */
  follow(follower: string, refs: readonly Ref[]): void {
    if (this.#stopped) return;
    const keys = refs.map(objectKey);
    for (const ref of refs) this.#followOne(follower, ref);
    for (const key of this.#namedBy.get(follower) ?? [])
      if (!keys.includes(key)) this.#unfollow(follower, key);
    if (keys.length === 0) this.#namedBy.delete(follower);
    else this.#namedBy.set(follower, keys);
  }

  /** Returns the followers of the Secret with this key. */
  followersOf(key: string): string[] {
    return [...(this.#named.get(key)?.followers ?? [])];
  }

  /**
   * Returns the fact that `make` derives from the Secret for `use`. The Secret is read only if it may have
   * changed since the last read.
   */
  async read<T>(
    ref: Ref,
    use: string,
    make: (secret: KubernetesObject | undefined) => T,
  ): Promise<SecretReading<T>> {
    const key = objectKey(ref);
    const known = this.recall(key, use);
    if (known !== undefined) return { fact: known.fact as T, read: undefined };
    // During the read, the watch may report a later version.
    if (!this.#reported.has(key)) this.#reported.set(key, beingRead);
    const secret = await this.#options.client.get(ref);
    const fact = make(secret);
    const version = versionOf(secret);
    this.#keep(key, version, use, fact);
    const before = this.#reported.get(key);
    this.#reported.set(key, version);
    // If the read finds a new version, the other followers of the Secret are notified.
    if (before !== beingRead && before !== version) this.#report(key, secret);
    return { fact, read: { secret } };
  }

  /** Returns the kept fact for `use` if it is from the current version of the Secret. */
  recall(key: string, use: string): { readonly fact: unknown } | undefined {
    const known = this.#facts.get(key);
    if (known?.version !== this.#versions.get(key) || !known?.uses.has(use)) return undefined;
    return { fact: known.uses.get(use) };
  }

  /** Keeps a fact about a Secret that the operator wrote, or that already matched its desired state. */
  keep(secret: KubernetesObject, use: string, fact: unknown): void {
    const key = objectKey(secret);
    this.#keep(key, versionOf(secret), use, fact);
    this.#reported.set(key, versionOf(secret));
  }

  /** Forgets the facts of a Secret that the operator no longer needs. */
  forget(key: string): void {
    this.#facts.delete(key);
    this.#reported.delete(key);
  }

  #keep(key: string, version: Version, use: string, fact: unknown): void {
    const known = this.#facts.get(key);
    const uses = known?.version === version ? known.uses : new Map<string, unknown>();
    this.#facts.set(key, { version, uses: uses.set(use, fact) });
  }

  #followOne(follower: string, ref: Ref): void {
    const key = objectKey(ref);
    const known = this.#named.get(key);
    if (known !== undefined) {
      known.followers.add(follower);
      return;
    }
    const reflector = watchOne(this.#options.client, ref, this.#common());
    this.#named.set(key, { reflector, followers: new Set([follower]) });
    reflector.onChange((_key, held) => this.#take(key, held?.object));
    reflector.start();
  }

  #unfollow(follower: string, key: string): void {
    const known = this.#named.get(key);
    known?.followers.delete(follower);
    if (known === undefined || known.followers.size > 0) return;
    this.#named.delete(key);
    this.#versions.delete(key);
    this.forget(key);
    // The operator does not wait for the end of the watch, because it ignores further changes.
    void known.reflector.stop();
  }

  #take(key: string, secret: KubernetesObject | undefined): void {
    const version = versionOf(secret);
    // The version of a deleted Secret is forgotten if the operator created the Secret, because it was deleted
    // with its owner.
    if (secret === undefined && !this.#named.has(key)) this.#versions.delete(key);
    else this.#versions.set(key, version);
    const before = this.#reported.get(key);
    // No follower has read this Secret, or the followers already know this version.
    if (before === undefined || before === version) return;
    this.#reported.set(key, version);
    this.#report(key, secret);
  }

  /**
   * Reports every Secret that was read or written before the watch began, because the Secret may have been
   * deleted before the watch began.
   */
  #doubtOwn(namespace: string | undefined): void {
    for (const [key, version] of this.#reported) {
      const isWatched = namespace === undefined || key.startsWith(`${namespace}/`);
      if (isWatched && version !== absent && !this.#named.has(key)) this.#report(key, undefined);
    }
  }

  #report(key: string, secret: KubernetesObject | undefined): void {
    for (const listener of this.#listeners) listener(key, secret);
  }

  #common() {
    return { observer: this.#options.observer };
  }
}

function versionOf(secret: KubernetesObject | undefined): Version {
  return secret === undefined ? absent : `${secret.metadata.uid}/${secret.metadata.resourceVersion}`;
}
