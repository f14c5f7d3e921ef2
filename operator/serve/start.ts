import { randomBytes } from "node:crypto";
import type { ApiLoad } from "../../config/contract/load.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { Writer } from "../apply/writer.ts";
import { ClassAllocations } from "../classes/class-allocations.ts";
import { ClusterCache } from "../cluster/cache.ts";
import type { ClusterClient } from "../cluster/client.ts";
import { EventRecorder } from "../cluster/events.ts";
import { LeaderElection } from "../cluster/lease.ts";
import type { Reflector, ReflectorObserver, WatchState } from "../cluster/reflector.ts";
import { Secrets } from "../cluster/secrets.ts";
import type { Pod, TtsDeployment, TtsModelCache, TtsModelPool } from "../facts/observed.ts";
import type { ReconcileOutcome } from "../facts/outcome.ts";
import type { Settings } from "../facts/settings.ts";
import { LicenseAllocations } from "../license/shares.ts";
import { readApiMetrics } from "../reconcile/api-pod-metrics.ts";
import { CanaryMetricsReader } from "../reconcile/canary-metrics-reader.ts";
import { readFetchProgress } from "../reconcile/fetch-progress.ts";
import { seedShares } from "../reconcile/observe.ts";
import { OperatorConflicts } from "../reconcile/operator-conflicts.ts";
import {
  ignoreDeletedOwner,
  type ReconcileContext,
  reconcileDeployment,
  reconcilePool,
  reportUnreadable,
} from "../reconcile/reconcile.ts";
import { reconcileModelCache } from "../reconcile/reconcile-cache.ts";
import { RevisionHistory } from "../reconcile/revision-history.ts";
import { TokenManager } from "../reconcile/token-manager.ts";
import { Scaler } from "../scaling/scaler.ts";
import {
  affectedKeys,
  deploymentKey,
  everyKey,
  isStatusChange,
  keysOfSecret,
  poolKey,
  poolKeys,
  turnFor,
} from "./affected-keys.ts";
import { type QueueActivity, type QueueObserver, WorkQueue } from "./work-queue.ts";

/** A logger with the fields before the message, like pino. Never log the content of a Secret. */
export interface OperatorLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface OperatorOptions {
  readonly client: ClusterClient;
  readonly settings: Settings;
  /** The namespaces to watch. An empty list means all namespaces. */
  readonly namespaces: readonly string[];
  /** The name of this process, which events contain. */
  readonly instance: string;
  /** Namespace and name of the Lease, which identify this release of the operator. */
  readonly release?: string;
  /** The Lease of the leader election. Without a Lease there is no leader election. */
  readonly election?: { readonly namespace: string; readonly name: string };
  readonly log: OperatorLog;
  /** Called when another process may be the leader. This process must then stop writing. */
  readonly onLost: (reason: string) => void;
  readonly workers?: number;
  readonly clock?: Clock;
  readonly queueObserver?: QueueObserver;
  /** The time for which each step of a token rotation waits for the pods. The default is 5 minutes. */
  readonly tokenOverlapMs?: number;
  /** Reads `/metrics` of an API pod for the analysis of canaries. By default a request is sent to the pod. */
  readonly readMetrics?: (pod: Pod) => Promise<string>;
  /** Reads the progress of a pod that fetches model files. By default a request is sent to the pod. */
  readonly readProgress?: ReconcileContext["readProgress"];
}

/** The current work of the operator, and the objects that its watches have reported. */
export interface Activity {
  readonly queue: QueueActivity;
  /** Requests in progress, without open watches. */
  readonly requests: number;
  /** Events that are not written yet. */
  readonly events: number;
  readonly watches: readonly WatchState[];
  /** The last load report of each API pod, by TtsDeployment and pod. */
  readonly loads: ReadonlyMap<string, ApiLoad>;
}

export interface FailingWatches {
  readonly kind: string;
  readonly namespace: string;
  readonly count: number;
}

/** A running operator. */
export interface Operator {
  leading(): boolean;
  /** Returns the last reported state of every TtsDeployment. */
  deployments(): Iterable<TtsDeployment>;
  /** Returns the last reported state of every TtsModelPool. */
  pools(): Iterable<TtsModelPool>;
  /** Returns the last reported state of every TtsModelCache. */
  modelCaches(): Iterable<TtsModelCache>;
  activity(): Activity;
  /**
   * Returns the number of failing watches by kind and namespace. The namespace is empty if one watch covers
   * all namespaces.
   */
  failingWatches(): readonly FailingWatches[];
  /** Ends the reconciles, the leadership and the watches, in this order. */
  stop(): Promise<void>;
}

/** The number of concurrent reconciles, which mostly wait for the API server. */
const defaultWorkers = 8;
const tokenBytes = 32;
/**
 * The default wait in a token rotation. A kubelet updates the mounted Secrets of its pods within 90 seconds,
 * and a busy kubelet may need more time.
 */
const defaultTokenOverlapMs = 300_000;

/** Starts an operator. Resolves when its caches are synchronized. */
export async function startOperator(options: OperatorOptions): Promise<Operator> {
  const { client, log, clock = systemClock } = options;
  const watching = { client, namespaces: options.namespaces, observer: watchLog(log) };
  const view = openView(watching, clock, log);
  const secrets = new Secrets(watching);
  // The queue needs the context, and parts of the context add keys to the queue.
  const enqueue = (key: string) => queue.add(key);
  const context = createContext(options, { view, secrets, clock, enqueue });
  const queue: WorkQueue = new WorkQueue({
    clock,
    workers: options.workers ?? defaultWorkers,
    turnOf: (key) => turnFor(view, key),
    pass: (key, _signal, share) => ignoreDeletedOwner(reconcileKey(context, key, share)),
    observer: queueLog(log, options.queueObserver),
  });
  secrets.onChange((key, secret) => {
    for (const one of keysOfSecret(view, secrets, key, secret)) queue.add(one);
  });
  secrets.start();
  const stopEarly = async (error: unknown) => {
    await Promise.all([view.stop(), secrets.stop()]);
    throw error;
  };
  await view.start().catch(stopEarly);
  const election = lead(options, workOnce(context, queue), clock);
  return {
    deployments: () => view.all("TtsDeployment") as Iterable<TtsDeployment>,
    pools: () => view.all("TtsModelPool") as Iterable<TtsModelPool>,
    modelCaches: () => view.all("TtsModelCache") as Iterable<TtsModelCache>,
    leading: () => election?.leading ?? true,
    failingWatches: () => countWatches([...view.failing(), ...secrets.failing()]),
    activity: () => ({
      queue: queue.activity,
      requests: client.inFlight,
      events: context.events.waiting,
      watches: [...view.watches(), ...secrets.watches()],
      loads: context.scaler.loads(),
    }),
    async stop() {
      await queue.stop();
      await context.scaler.stop();
      await context.events.flush();
      await election?.stop();
      await Promise.all([view.stop(), secrets.stop()]);
    },
  };
}

function openView(
  watching: { client: ClusterClient; namespaces: readonly string[]; observer: ReflectorObserver },
  clock: Clock,
  log: OperatorLog,
): ClusterCache {
  return new ClusterCache({
    ...watching,
    clock,
    onForbidden: (namespace) =>
      log.error(
        { namespace },
        "the operator has no permission to read the namespace (403), so it treats the namespace as empty and retries; if the namespace was deleted, remove it from watchNamespaces, otherwise restore the operator's role in it",
      ),
  });
}

interface ContextParts {
  readonly view: ClusterCache;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly enqueue: (key: string) => void;
}

function createContext(
  { client, log, settings, ...options }: OperatorOptions,
  { view, secrets, clock, enqueue }: ContextParts,
): ReconcileContext {
  return {
    client,
    clock,
    view,
    secrets,
    settings,
    scaler: new Scaler({
      clock,
      wake: (key) => enqueue(poolKey(key)),
      wakeDeployment: (key) => enqueue(deploymentKey(key)),
      onError: (deployment, pod, error) =>
        log.warn(
          { deployment, pod, error: String(error) },
          "the operator cannot read the load report of an API pod; it retries",
        ),
    }),
    rivals: new OperatorConflicts(options.release, clock, (key, { names }) =>
      log.error(
        { key, leases: names },
        "another operator also reconciles this TtsDeployment; the operator with the first Lease continues, and the other operator waits; uninstall one release, or change its watchNamespaces",
      ),
    ),
    writer: new Writer(client, view, secrets, clock),
    history: new RevisionHistory(client, view, clock),
    classes: new ClassAllocations(),
    shares: new LicenseAllocations((keys) => {
      for (const key of keys) for (const one of [deploymentKey(key), ...poolKeys(view, key)]) enqueue(one);
    }),
    tokens: new TokenManager({
      secrets,
      clock,
      newToken: () => randomBytes(tokenBytes).toString("base64url"),
      overlapMs: options.tokenOverlapMs ?? defaultTokenOverlapMs,
    }),
    analyst: new CanaryMetricsReader({
      clock,
      readMetrics: options.readMetrics ?? readApiMetrics,
      onUnread: (pod, error) =>
        log.warn(
          { pod, error: String(error) },
          "the operator cannot read the metrics of an API pod; it retries",
        ),
    }),
    readProgress: options.readProgress ?? ((pod) => readFetchProgress(pod)),
    onProgressUnread: (pod, error) =>
      log.debug({ pod, error: String(error) }, "the operator cannot read the progress of a pod; it retries"),
    events: new EventRecorder({
      client,
      clock,
      instance: options.instance,
      onDropped: ({ reason }, why) =>
        log.warn({ reason, error: String(why) }, "the operator could not write an event and dropped it"),
    }),
  };
}

/**
 * Returns a function that starts the work on its first call: it adds every key, and later the keys that a
 * change affects.
 */
function workOnce({ view, shares }: ReconcileContext, queue: WorkQueue): () => void {
  let isWorking = false;
  return () => {
    if (isWorking) return;
    isWorking = true;
    seedShares(view, shares);
    view.onChange((change) => {
      const isStatus = isStatusChange(change);
      for (const key of affectedKeys(view, change)) isStatus ? queue.addUnlessFailed(key) : queue.add(key);
    });
    for (const [key, priority] of everyKey(view)) queue.add(key, priority);
    queue.start();
  };
}

function countWatches(failing: readonly Reflector[]): FailingWatches[] {
  const byPlace = Map.groupBy(failing, ({ kind, selection }) => `${kind}/${selection.namespace ?? ""}`);
  return [...byPlace].map(([place, { length: count }]) => {
    const [kind = "", namespace = ""] = place.split("/");
    return { kind, namespace, count };
  });
}

function lead(options: OperatorOptions, work: () => void, clock: Clock): LeaderElection | undefined {
  const { client, election, log, instance, onLost } = options;
  if (election === undefined) {
    work();
    return undefined;
  }
  return new LeaderElection({
    client,
    clock,
    ...election,
    identity: `${instance}_${randomBytes(6).toString("hex")}`,
    onLeading: () => {
      log.info({ lease: election.name }, "this process is the leader now");
      work();
    },
    onLost,
    onError: (error) =>
      log.warn({ error: String(error) }, "the operator could not read or write the Lease; it retries"),
  }).start();
}

function reconcileKey(context: ReconcileContext, key: string, share: () => void): Promise<ReconcileOutcome> {
  const [kind = "", ...rest] = key.split("/");
  return reportUnreadable(context, kind, reconcileKind(context, kind, rest.join("/"), share));
}

function reconcileKind(
  context: ReconcileContext,
  kind: string,
  key: string,
  share: () => void,
): Promise<ReconcileOutcome> {
  if (kind === "TtsModelPool") return reconcilePool(context, key);
  if (kind === "TtsModelCache") return reconcileModelCache(context, key);
  return reconcileDeployment(context, key, share);
}

function watchLog(log: OperatorLog): ReflectorObserver {
  return {
    listed: (kind, objects) => log.debug({ kind, objects }, "the operator listed objects"),
    interrupted: (kind, error, retryMs) => {
      if (error !== undefined)
        log.warn(
          { kind, error: String(error), retryMs },
          "a watch was interrupted; the operator opens it again after retryMs",
        );
    },
    listenerFailed: (kind, key, error) =>
      log.error(
        { kind, key, error: String(error) },
        "the operator could not process a change, because of a bug; report it with this log",
      ),
  };
}

function queueLog(log: OperatorLog, more: QueueObserver = {}): QueueObserver {
  return {
    ...more,
    finished(key, result, tookMs) {
      log.debug({ key, result, tookMs }, "a reconcile has ended");
      more.finished?.(key, result, tookMs);
    },
    failed(key, error, failures, retryMs) {
      log.warn(
        { key, error: String(error), failures, retryMs },
        "a reconcile failed; the operator retries it after retryMs",
      );
      more.failed?.(key, error, failures, retryMs);
    },
  };
}
