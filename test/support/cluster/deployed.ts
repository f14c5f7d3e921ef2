/** One `TtsDeployment` of a world: its pods, changes of it, and changes under load. */
import { expect } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import { eventually } from "../eventually.ts";
import type { KubeObject } from "./real-cluster.ts";
import type { LoadOptions, LoadReport, World } from "./world.ts";

export class Deployed {
  readonly name: string;
  readonly #world: World;

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name;
  }

  async patch(spec: object): Promise<void> {
    const patch = JSON.stringify({ spec });
    await this.#world.kubectl.do("patch", "ttsd", this.name, "--type=merge", "-p", patch);
  }

  setModels(...models: object[]): Promise<void> {
    return this.patch({ models });
  }

  pool(pool: string): Promise<KubeObject | undefined> {
    return this.#world.kubectl.get("ttsmp", `${this.name}-${pool}`);
  }

  async readyReplicas(pool: string): Promise<number> {
    return (await this.pool(pool))?.status?.readyReplicas ?? 0;
  }

  /** The pods of a pool, including those that are being deleted. */
  everyPod(pool: string): Promise<KubeObject[]> {
    return this.#podsBy(`${labels.pool}=${pool}`);
  }

  /** The names of the pods of a pool that are not being deleted, sorted. */
  async pods(pool: string): Promise<string[]> {
    return staying(await this.everyPod(pool));
  }

  apiPods(): Promise<KubeObject[]> {
    return this.#podsBy(`${labels.component}=api`);
  }

  /** The names of all pods that are not being deleted, sorted. */
  async allPods(): Promise<string[]> {
    return staying(await this.#podsBy());
  }

  /** The number of container restarts of these pods. */
  async restarts(selector: string): Promise<number> {
    const statuses = (await this.#podsBy(selector)).flatMap(
      ({ status }) => (status?.containerStatuses ?? []) as { restartCount: number }[],
    );
    return statuses.reduce((sum, { restartCount }) => sum + restartCount, 0);
  }

  /** Waits until the pool has this many ready pods, none of which existed before. */
  async renewed(pool: string, before: readonly string[], count: number): Promise<void> {
    await eventually(
      `${count} new pods of ${pool}`,
      async () => {
        const now = await this.pods(pool);
        const ready = await this.readyReplicas(pool);
        return now.length === count && ready === count && now.every((pod) => !before.includes(pod));
      },
      { seen: async () => (await this.pool(pool))?.status },
    );
  }

  /**
   * Runs an action during streams, and one more request of each client afterwards. Every request must
   * succeed, and no stream may be cut.
   */
  async uncut(
    what: string,
    body: Record<string, unknown>,
    act: () => Promise<unknown>,
    options: LoadOptions = { streams: 16, listening: true },
  ): Promise<LoadReport> {
    const load = await this.#world.load(this.name, body, options);
    await act();
    await load.goesOn();
    const report = await load.stop();
    console.info(`${what}: ${report.ok} streams spoken, ${report.failed} cut or failed`);
    expect(report).toMatchObject({ failed: 0, failures: [] });
    // mist is deterministic, and arcana is not
    if (body.modelId === "mist") expect(report.sizes).toEqual([expect.any(Number)]);
    return report;
  }

  #podsBy(selector = ""): Promise<KubeObject[]> {
    const both = [`${labels.deployment}=${this.name}`, selector].filter((part) => part !== "");
    return this.#world.kubectl.list("pods", both.join(","));
  }
}

function staying(pods: readonly KubeObject[]): string[] {
  return pods
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)
    .sort();
}
