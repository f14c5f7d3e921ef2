/**
 * Records the times of status changes with a watch. The measurement compares these times with the scheduled
 * times.
 */
import type { TtsDeploymentStatus } from "../../../../crds/tts-deployment.ts";
import type { CanaryState } from "../../../../crds/tts-model-pool.ts";
import type { ClusterClient } from "../../../../operator/cluster/client.ts";
import { Reflector } from "../../../../operator/cluster/reflector.ts";
import type { TtsModelPool } from "../../../../operator/facts/observed.ts";

interface SeenCanary {
  readonly pool: string;
  readonly state: CanaryState;
  readonly atMs: number;
}

/** Records the times of canary steps and of license expiries, in milliseconds since the epoch. */
export class Timeline implements AsyncDisposable {
  readonly #canaries: SeenCanary[] = [];
  /** The time at which a license was first observed as not valid, by name of the TtsDeployment. */
  readonly #ended = new Map<string, number>();
  readonly #reflectors: readonly Reflector[];

  private constructor(client: ClusterClient, namespace: string) {
    const pools = new Reflector(client, "TtsModelPool", { namespace });
    pools.onChange((_key, _held, object) => {
      const { metadata, status } = (object ?? {}) as Partial<TtsModelPool>;
      if (metadata !== undefined && status?.canary !== undefined)
        this.#seeCanary(metadata.name, status.canary);
    });
    const deployments = new Reflector(client, "TtsDeployment", { namespace });
    deployments.onChange((_key, _held, object) => {
      const { license } = (object?.status ?? {}) as Partial<TtsDeploymentStatus>;
      const { name = "" } = object?.metadata ?? {};
      if (license !== undefined && license.state !== "valid" && !this.#ended.has(name))
        this.#ended.set(name, Date.now());
    });
    this.#reflectors = [pools, deployments];
  }

  static async start(client: ClusterClient, namespace: string): Promise<Timeline> {
    const timeline = new Timeline(client, namespace);
    for (const reflector of timeline.#reflectors) await reflector.start().synced();
    return timeline;
  }

  /** Returns the delay of each canary step of the pool, in milliseconds after the end of the pause. */
  stepsLateMs(pool: string, pausesSeconds: readonly number[]): number[] {
    const states = this.#canaries.filter((seen) => seen.pool === pool);
    return pausesSeconds.flatMap((seconds, step) => {
      const analysing = states.find(({ state }) => state.step === step && state.phase === "Analysing");
      const next = states.find(({ state }) => state.step > step || state.phase === "Promoting");
      if (analysing === undefined || next === undefined) return [];
      return [next.atMs - (Date.parse(analysing.state.since) + seconds * 1000)];
    });
  }

  wasRolledBack(pool: string): boolean {
    return this.#canaries.some((seen) => seen.pool === pool && seen.state.phase === "RolledBack");
  }

  licenseEndedMs(deployment: string): number | undefined {
    return this.#ended.get(deployment);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
  }

  #seeCanary(pool: string, state: CanaryState): void {
    const last = this.#canaries.findLast((seen) => seen.pool === pool);
    if (last?.state.phase === state.phase && last.state.step === state.step) return;
    this.#canaries.push({ pool, state, atMs: Date.now() });
  }
}
