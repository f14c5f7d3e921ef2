import type { Clock } from "../../lib/clock.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { ApiError } from "./api-error.ts";
import type { ClusterClient, Selection } from "./client.ts";
import { type ChangeListener, Reflector, type ReflectorObserver } from "./reflector.ts";
import type { StoredObject } from "./stored-object.ts";

export interface OptionalKindOptions extends Selection {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly observer: ReflectorObserver;
  readonly onChange: ChangeListener;
  readonly hold: (object: KubernetesObject) => StoredObject;
}

/** The interval at which the operator checks whether a kind that a spec needs is now installed. */
export const discoveryIntervalMs = 10_000;

/**
 * A kind of another product, such as ServiceMonitor of the Prometheus operator. If the kind is installed, the
 * operator watches it. Otherwise the operator checks the cluster again while a spec needs the kind. Without
 * such a spec it sends no requests.
 */
export class OptionalKind {
  readonly kind: string;
  readonly #options: OptionalKindOptions;
  #reflector: Reflector | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  #stopped = false;
  #isComplete = false;

  constructor(kind: string, options: OptionalKindOptions) {
    this.kind = kind;
    this.#options = options;
  }

  get installed(): boolean {
    return this.#reflector !== undefined;
  }

  /**
   * Whether all objects of the kind are known. This is also the case if the kind is not installed. It is false
   * until the first list, which may be rejected.
   */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** The watch of the kind, or undefined if the kind is not installed. */
  get reflector(): Reflector | undefined {
    return this.#reflector;
  }

  /**
   * Returns whether the kind is installed. If it was not installed, the cluster is checked again, with a
   * minimum interval.
   */
  async find(): Promise<boolean> {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.installed && nowMs - this.#lookedAtMs >= discoveryIntervalMs / 2) {
      this.#lookedAtMs = nowMs;
      this.#looking = this.#look();
    }
    await this.#looking;
    return this.installed;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([this.#reflector?.stop(), this.#looking]);
  }

  /**
   * Checks whether the kind is installed, and starts its watch. If the cluster does not respond, the kind
   * counts as not installed, and the observer receives the error.
   */
  async #look(): Promise<void> {
    const { client, observer, clock: _, onChange, ...selection } = this.#options;
    try {
      const isServed = await client.serves(this.kind);
      this.#isComplete = !isServed;
      if (!isServed || this.#stopped) return;
    } catch (error) {
      observer.interrupted?.(this.kind, error, discoveryIntervalMs);
      return;
    }
    const reflector = new Reflector(client, this.kind, {
      ...selection,
      keepManagedFields: true,
      observer: {
        ...observer,
        interrupted: (kind, error, retryMs) => {
          if (error instanceof ApiError && error.status === 404) this.#forget(reflector);
          else observer.interrupted?.(kind, error, retryMs);
        },
      },
    });
    reflector.onChange(onChange);
    this.#reflector = reflector.start();
    reflector.synced().then(
      () => this.#setComplete(reflector),
      () => undefined, // The kind was uninstalled, or the operator stopped.
    );
    // Wait for the first list. Otherwise the watch would not report the deletion of an object that is written
    // and deleted before the list.
    try {
      await Promise.race([reflector.synced(), reflector.forbidden()]);
    } catch (error) {
      // The error is expected if the kind was uninstalled, or if the operator stopped.
      if (this.#reflector === reflector && !this.#stopped) throw error;
    }
  }

  #setComplete(reflector: Reflector): void {
    if (this.#reflector === reflector) this.#isComplete = true;
  }

  /** Handles the uninstallation of the kind, with which Kubernetes deleted all objects of the kind. */
  #forget(reflector: Reflector): void {
    if (this.#reflector !== reflector) return;
    const keys = [...reflector.keys()];
    this.#reflector = undefined;
    this.#isComplete = true;
    void reflector.stop();
    for (const key of keys) this.#options.onChange(key, undefined);
  }
}
