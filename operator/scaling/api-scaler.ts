import type { Clock } from "../../lib/clock.ts";
import { apiRuleOf, type ScalingRule } from "../desired/scaling-rule.ts";
import type { ObservedDeployment } from "../facts/observed.ts";
import { changed, decide, firstMemory, type ScalingDecision, type ScalingHistory } from "./decide.ts";
import type { LoadCollector } from "./load-collector.ts";

export interface ApiScalerOptions {
  readonly clock: Clock;
  readonly collector: LoadCollector;
  /** Requests a reconcile of the TtsDeployment with this key. */
  readonly wake: (key: string) => void;
}

/** The state of an API tier at its last reconcile. */
interface Known {
  readonly uid: string | undefined;
  readonly rule: ScalingRule;
  readonly current: number;
  readonly ready: number;
  memory: ScalingHistory;
  cancel: () => void;
}

/** Plans the number of API pods for `api.scaling`, from the total streams of all models. */
export class ApiScaler {
  readonly #options: ApiScalerOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: ApiScalerOptions) {
    this.#options = options;
  }

  /** Returns the planned number of API pods, which the reconcile then applies. */
  replicasOf(key: string, { deployment, api }: ObservedDeployment): number {
    const rule = apiRuleOf(deployment.spec.api);
    if (rule === undefined) {
      this.forget(key);
      return deployment.spec.api.replicas;
    }
    const { uid } = deployment.metadata;
    const current = api.deployment?.spec?.replicas ?? rule.fewest;
    const before = this.#known.get(key);
    const known: Known = {
      uid,
      rule,
      current,
      ready: api.deployment?.status?.readyReplicas ?? 0,
      memory: before?.uid === uid ? this.#since(before, current) : firstMemory(current, this.#nowMs()),
      cancel: before?.cancel ?? (() => undefined),
    };
    this.#known.set(key, known);
    return this.#plan(key, known).replicas;
  }

  /** Plans again after a change of the load, and requests a reconcile if the planned number differs. */
  lookAt(key: string): void {
    const known = this.#known.get(key);
    if (known !== undefined && this.#plan(key, known).replicas !== known.current) this.#options.wake(key);
  }

  forget(key: string): void {
    this.#known.get(key)?.cancel();
    this.#known.delete(key);
  }

  stop(): void {
    for (const key of [...this.#known.keys()]) this.forget(key);
  }

  /**
   * Returns the history. It records a change of the replicas since the last reconcile, which the operator or
   * another client wrote.
   */
  #since({ memory, current: earlier }: Known, current: number): ScalingHistory {
    return current === earlier ? memory : changed(memory, current - earlier, this.#nowMs());
  }

  #plan(key: string, known: Known): ScalingDecision {
    const { rule, current, ready, memory } = known;
    const { collector, clock } = this.#options;
    const demand = {
      streams: collector.streams(key),
      firstAudioMs: undefined,
      complete: collector.silent(key)?.length === 0,
    };
    const facts = { nowMs: this.#nowMs(), current, ready, licensed: Number.POSITIVE_INFINITY, demand };
    const plan = decide(rule, facts, memory);
    known.memory = plan.memory;
    known.cancel();
    known.cancel =
      plan.lookAgainMs === undefined
        ? () => undefined
        : clock.after(plan.lookAgainMs, () => this.lookAt(key));
    return plan;
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}
