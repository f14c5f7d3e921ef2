import { managedSelector } from "../facts/child-metadata.ts";
import type { KubernetesObject, Ref } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { ClusterClient } from "./client.ts";
import { Reflector, type ReflectorObserver, type WatchState, watchOne } from "./reflector.ts";

export interface SecretsOptions {
  readonly client: ClusterClient;
  /** Empty: all namespaces. */
  readonly namespaces: readonly string[];
  readonly observer: ReflectorObserver;
}

/** Receives the key (`namespace/name`) of a Secret that changed since it was read, and its metadata (`undefined` if it was deleted). */
type SecretListener = (key: string, secret: KubernetesObject | undefined) => void;

/** A fact that was derived from a Secret's content. */
export interface SecretReading<T> {
  readonly fact: T;
  /** The Secret itself, if this call read it. It is for the current reconcile only and is not kept. */
  readonly read: { readonly secret: KubernetesObject | undefined } | undefined;
}

/** Uid and version: a recreated Secret may have any version. */
type Version = string;
const absent: Version = "absent";
const beingRead: Version = "being read";

interface Named {
  readonly reflector: Reflector;
  readonly followers: Set<string>;
}

/**
 * Reads Secrets by name, when a reconcile needs one that has changed since it was read. Only the facts that were derived from it
 * are kept. Watches of the metadata report changes: one watch for each Secret that users name, and one, which never lists, for
 * all Secrets that the operator created.
 */
export class Secrets {
  readonly #options: SecretsOptions;
  readonly #own: Reflector[];
  readonly #named = new Map<string, Named>();
  readonly #namedBy = new Map<string, readonly string[]>();
  /** The versions from watches and from the operator's writes. */
  readonly #versions = new Map<string, Version>();
  /** The version of each read Secret that its followers know, or were notified of. */
  readonly #reported = new Map<string, Version>();
  /** By key, then by use. All facts of a Secret are from one version. */
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

  /** The watches whose last attempt failed. */
  failing(): Reflector[] {
    return this.#reflectors().filter(({ isFailing }) => isFailing);
  }

  watches(): WatchState[] {
    return this.#reflectors().map(({ state }) => state);
  }

  #reflectors(): Reflector[] {
    return [...this.#own, ...[...this.#named.values()].map(({ reflector }) => reflector)];
  }

  /** Watches the named Secrets for as long as `follower` names them. */
  follow(follower: string, refs: readonly Ref[]): void {
    if (this.#stopped) return;
    const keys = refs.map(objectKey);
    for (const ref of refs) this.#followOne(follower, ref);
    for (const key of this.#namedBy.get(follower) ?? [])
      if (!keys.includes(key)) this.#unfollow(follower, key);
    if (keys.length === 0) this.#namedBy.delete(follower);
    else this.#namedBy.set(follower, keys);
  }

  /** The followers of the Secret with this key. */
  followersOf(key: string): string[] {
    return [...(this.#named.get(key)?.followers ?? [])];
  }

  /** The fact that `make` derives from the Secret for `use`. The Secret is read only if it may have changed since. */
  async read<T>(
    ref: Ref,
    use: string,
    make: (secret: KubernetesObject | undefined) => T,
  ): Promise<SecretReading<T>> {
    const key = objectKey(ref);
    const known = this.recall(key, use);
    if (known !== undefined) return { fact: known.fact as T, read: undefined };
    // From here on, the watch may report a later version than the one that is read.
    if (!this.#reported.has(key)) this.#reported.set(key, beingRead);
    const secret = await this.#options.client.get(ref);
    const fact = make(secret);
    const version = versionOf(secret);
    this.#keep(key, version, use, fact);
    const before = this.#reported.get(key);
    this.#reported.set(key, version);
    // A reader that finds a new version reports it to all others who share the Secret.
    if (before !== beingRead && before !== version) this.#report(key, secret);
    return { fact, read: { secret } };
  }

  /** The kept fact for `use`, while the Secret has not changed since. */
  recall(key: string, use: string): { readonly fact: unknown } | undefined {
    const known = this.#facts.get(key);
    if (known?.version !== this.#versions.get(key) || !known?.uses.has(use)) return undefined;
    return { fact: known.uses.get(use) };
  }

  /** Keeps a fact about a Secret that the operator wrote, or that matched its desired state. */
  keep(secret: KubernetesObject, use: string, fact: unknown): void {
    const key = objectKey(secret);
    this.#keep(key, versionOf(secret), use, fact);
    this.#reported.set(key, versionOf(secret));
  }

  /** Drops the facts of a Secret that the operator no longer needs. */
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
    // There is no need to wait for its end, because it has no listeners any more.
    void known.reflector.stop();
  }

  #take(key: string, secret: KubernetesObject | undefined): void {
    const version = versionOf(secret);
    // forget a deleted Secret of the operator, which is deleted with its owner
    if (secret === undefined && !this.#named.has(key)) this.#versions.delete(key);
    else this.#versions.set(key, version);
    const before = this.#reported.get(key);
    // no follower has read this Secret, or none needs to read it again
    if (before === undefined || before === version) return;
    this.#reported.set(key, version);
    this.#report(key, secret);
  }

  /** Reports every Secret that was read or written before the watch began, because it may have been deleted in between. */
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
