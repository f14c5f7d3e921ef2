import type { ApiLoad } from "../../config/contract/load.ts";
import type { Clock } from "../../lib/clock.ts";
import { ruleOf, type ScalingRule } from "../desired/scaling-rule.ts";
import type {
  ObservedDeployment,
  Pod,
  ScalingState,
  TtsDeployment,
  TtsModelPool,
} from "../facts/observed.ts";
import { ApiScaler } from "./api-scaler.ts";
import {
  changed,
  decide,
  firstMemory,
  type ScalingDecision,
  type ScalingFacts,
  type ScalingHistory,
} from "./decide.ts";
import { LoadCollector, type LoadReporter } from "./load-collector.ts";

export interface ScalerOptions {
  readonly clock: Clock;
  /** Requests a reconcile of the pool with this key. */
  readonly wake: (poolKey: string) => void;
  /** Requests a reconcile of the TtsDeployment with this key. */
  readonly wakeDeployment: (key: string) => void;
  readonly onError: (deploymentKey: string, pod: string, error: unknown) => void;
}

/**
 * The shortest time between two updates of the used streams in a status. All pools of a TtsDeployment report
 * their streams at the same time, so that the TtsDeployment sums them only once. Different TtsDeployments
 * report at different times.
 */
const reportUsedMs = 60_000;
/**
 * The time without a load report after which the status names an API pod. It is long enough for new pods and
 * short disconnections.
 */
const silentMs = 30_000;

/** The state of a pool at its last reconcile. */
interface Known {
  readonly deployment: string;
  readonly pool: TtsModelPool;
  /** The scaling rule. It is undefined if another controller scales the pool. */
  readonly rule: ScalingRule | undefined;
  readonly licensed: number;
  memory: ScalingHistory;
  plan: ScalingDecision | undefined;
  used: { readonly streams: number; readonly slot: number } | undefined;
  cancel: () => void;
}

/**
 * Observes the load of every pool with `scaling`, and plans the replicas of the pools that the operator
 * scales. It does not write to the cluster, but requests a reconcile when the plan differs from the pool.
 */
export class Scaler {
  readonly #options: ScalerOptions;
  readonly #collector: LoadCollector;
  readonly #apiTiers: ApiScaler;
  readonly #known = new Map<string, Known>();
  /** The last responses of the license issuer that the API pods of each TtsDeployment reported. */
  readonly #answers = new Map<string, string>();

  constructor(options: ScalerOptions) {
    this.#options = options;
    this.#collector = new LoadCollector({
      clock: options.clock,
      onError: options.onError,
      onChange: (deployment) => this.#lookAt(deployment),
    });
    this.#apiTiers = new ApiScaler({
      clock: options.clock,
      collector: this.#collector,
      wake: options.wakeDeployment,
    });
  }

  /**
   * Collects the load of a TtsDeployment if its API tier or a pool has `scaling`, or if its API pods check
   * the license online.
   */
  follow(key: string, { spec }: TtsDeployment, apiPods: readonly Pod[], tokens: readonly string[]): void {
    const isScaled = [spec.api, ...spec.models].some(({ scaling }) => scaling !== undefined);
    if (isScaled || spec.license?.endpoint !== undefined)
      this.#collector.follow(key, reportersOf(apiPods), tokens);
    else this.forget(key);
  }

  /** Adds the planned number of API pods to the observed deployment. */
  withApiReplicas(key: string, observed: ObservedDeployment): ObservedDeployment {
    return { ...observed, apiReplicas: this.#apiTiers.replicasOf(key, observed) };
  }

  forget(key: string): void {
    this.#collector.forget(key);
    this.#apiTiers.forget(key);
    this.#answers.delete(key);
    for (const [pool, known] of this.#known) if (known.deployment === key) this.forgetPool(pool);
  }

  forgetPool(key: string): void {
    this.#known.get(key)?.cancel();
    this.#known.delete(key);
  }

  async stop(): Promise<void> {
    for (const key of [...this.#known.keys()]) this.forgetPool(key);
    this.#apiTiers.stop();
    await this.#collector.stop();
  }

  /**
   * Returns the scaling state of the pool for its reconcile. `licensed` is the number of replicas that the
   * license allows.
   */
  view(key: string, pool: TtsModelPool, licensed: number): ScalingState | undefined {
    const { scaling } = pool.spec;
    if (scaling === undefined) {
      this.forgetPool(key);
      return undefined;
    }
    const known = this.#know(key, pool, licensed);
    this.#plan(key, known);
    const figures = this.#collector.figures(known.deployment, pool.spec.pool);
    return {
      replicas: known.rule && known.plan?.replicas,
      plan: known.plan?.kind,
      silentPods: this.#silentPods(known),
      used: this.#usedOf(known, figures.streams),
      streamsByReplica: figures.replicas,
    };
  }

  /** Records that the planned number of replicas was written. */
  scaled(key: string, pool: TtsModelPool, from: number): void {
    const known = this.#known.get(key);
    if (known === undefined) return;
    const memory = changed(known.memory, pool.spec.replicas - from, this.#options.clock.monotonicMs());
    this.#known.set(key, { ...known, pool, memory });
  }

  #know(key: string, pool: TtsModelPool, licensed: number): Known {
    const before = this.#known.get(key);
    const { namespace, uid } = pool.metadata;
    const rule = pool.spec.scaling?.provider === "Builtin" ? ruleOf(pool.spec) : undefined;
    const isSame = before?.pool.metadata.uid === uid && (before.rule === undefined) === (rule === undefined);
    const known: Known = {
      deployment: `${namespace}/${pool.spec.deployment}`,
      pool,
      rule,
      licensed,
      memory: isSame ? before.memory : firstMemory(pool.spec.replicas, this.#options.clock.monotonicMs()),
      plan: isSame ? before.plan : undefined,
      used: before?.used,
      cancel: before?.cancel ?? (() => undefined),
    };
    this.#known.set(key, known);
    return known;
  }

  /** Returns the signed responses of the license issuer that API pods report. */
  licenseAnswers(key: string): string[] {
    return this.#collector.licenseAnswers(key);
  }

  /** Returns the last report of each API pod, by TtsDeployment and pod. */
  loads(): ReadonlyMap<string, ApiLoad> {
    return this.#collector.loads();
  }

  #lookAt(deployment: string): void {
    this.#apiTiers.lookAt(deployment);
    const answers = this.licenseAnswers(deployment).join();
    if (answers !== "" && answers !== this.#answers.get(deployment)) {
      this.#answers.set(deployment, answers);
      this.#options.wakeDeployment(deployment);
    }
    for (const [key, known] of this.#known) if (known.deployment === deployment) this.#look(key, known);
  }

  /** Plans again, and requests a reconcile if the plan or the reported streams have changed. */
  #look(key: string, known: Known): void {
    const before = known.plan?.kind;
    this.#plan(key, known);
    const isDue = known.rule !== undefined && known.plan?.replicas !== known.pool.spec.replicas;
    if (isDue || known.plan?.kind !== before || this.#isUsedChanged(known)) this.#options.wake(key);
  }

  #plan(key: string, known: Known): void {
    const facts = this.#factsOf(known);
    const plan = known.rule && decide(known.rule, facts, known.memory);
    if (plan) known.memory = plan.memory;
    known.plan = plan;
    known.cancel();
    const times = [plan?.lookAgainMs, this.#untilReport(known), this.#untilSilent(known)];
    const soonest = Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY));
    known.cancel = Number.isFinite(soonest)
      ? this.#options.clock.after(soonest, () => this.#lookAgain(key))
      : () => undefined;
  }

  #lookAgain(key: string): void {
    const known = this.#known.get(key);
    if (known === undefined) return;
    if (this.#untilSilent(known) !== undefined || this.#silentPods(known).length > 0) this.#options.wake(key);
    this.#look(key, known);
  }

  #factsOf({ deployment, pool, licensed }: Known): ScalingFacts {
    const { streams, waiting, firstAudioMs } = this.#collector.figures(deployment, pool.spec.pool);
    return {
      nowMs: this.#options.clock.monotonicMs(),
      current: pool.spec.replicas,
      ready: pool.status?.readyReplicas ?? 0,
      licensed,
      demand: {
        streams: streams + waiting,
        firstAudioMs,
        complete: this.#collector.silent(deployment)?.length === 0,
      },
    };
  }

  #silentPods({ deployment }: Known): string[] {
    const silent = this.#collector.silent(deployment) ?? [];
    return silent.filter(({ forMs }) => forMs >= silentMs).map(({ pod }) => pod);
  }

  /** Returns the milliseconds until a pod without load reports is named in the status. */
  #untilSilent({ deployment }: Known): number | undefined {
    const coming = (this.#collector.silent(deployment) ?? []).filter(({ forMs }) => forMs < silentMs);
    return coming.length === 0 ? undefined : Math.min(...coming.map(({ forMs }) => silentMs - forMs)) + 1;
  }

  #isUsedChanged(known: Known): boolean {
    const { streams } = this.#collector.figures(known.deployment, known.pool.spec.pool);
    return known.used?.streams !== streams && this.#untilReport(known) === undefined;
  }

  #untilReport(known: Known): number | undefined {
    const { streams } = this.#collector.figures(known.deployment, known.pool.spec.pool);
    if (known.used === undefined || known.used.streams === streams) return undefined;
    const { slot, leftMs } = this.#slotOf(known);
    return known.used.slot === slot ? leftMs : undefined;
  }

  /**
   * Returns the number of the current reporting interval of the TtsDeployment, and the time until its end.
   */
  #slotOf({ deployment }: Known): { slot: number; leftMs: number } {
    const nowMs = this.#options.clock.monotonicMs() + offsetOf(deployment);
    const slot = Math.floor(nowMs / reportUsedMs);
    return { slot, leftMs: (slot + 1) * reportUsedMs - nowMs };
  }

  /** Returns the streams in use for the status. It is undefined while no load report has arrived. */
  #usedOf(known: Known, streams: number): number | undefined {
    if (this.#collector.silent(known.deployment)?.length !== 0) return known.used?.streams;
    if (known.used?.streams !== streams && this.#untilReport(known) === undefined) {
      known.used = { streams, slot: this.#slotOf(known).slot };
    }
    return known.used?.streams;
  }
}

function offsetOf(deployment: string): number {
  let sum = 0;
  for (let index = 0; index < deployment.length; index += 1)
    sum = (sum * 31 + deployment.charCodeAt(index)) % reportUsedMs;
  return sum;
}

/** Returns the ready API pods, which report their load. */
function reportersOf(pods: readonly Pod[]): LoadReporter[] {
  return pods.flatMap(({ metadata, spec, status }) => {
    const isReady = status?.conditions?.some(
      ({ type, status: state }) => type === "Ready" && state === "True",
    );
    const container = spec?.containers.find(({ name }) => name === "api");
    const port = container?.ports?.find(({ name }) => name === "http")?.containerPort;
    const address = status?.podIP;
    if (!isReady || metadata.deletionTimestamp || port === undefined || address === undefined) return [];
    const host = address.includes(":") ? `[${address}]` : address;
    return [{ pod: metadata.name, url: `http://${host}:${port}` }];
  });
}
