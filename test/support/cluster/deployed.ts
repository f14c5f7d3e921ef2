/**
 * A `TtsDeployment` in the namespace of a `World`. The methods read its pods, change it, and test it under
 * load.
 */
import { expect } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import { eventually } from "../eventually.ts";
import type { LoadReport } from "./load-program.ts";
import type { KubeObject } from "./real-cluster.ts";
import type { LoadOptions, World } from "./world.ts";

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

  /** Returns the pods of a pool, including pods that are being deleted. */
  everyPod(pool: string): Promise<KubeObject[]> {
    return this.#podsBy(`${labels.pool}=${pool}`);
  }

  /** Returns the sorted names of the pods of a pool, without pods that are being deleted. */
  async pods(pool: string): Promise<string[]> {
    return namesOfRemaining(await this.everyPod(pool));
  }

  apiPods(): Promise<KubeObject[]> {
    return this.#podsBy(`${labels.component}=api`);
  }

  /** Returns the sorted names of all pods, without pods that are being deleted. */
  async allPods(): Promise<string[]> {
    return namesOfRemaining(await this.#podsBy());
  }

  /** Returns the number of container restarts of the selected pods. */
  async restarts(selector: string): Promise<number> {
    const statuses = (await this.#podsBy(selector)).flatMap(
      ({ status }) => (status?.containerStatuses ?? []) as { restartCount: number }[],
    );
    return statuses.reduce((sum, { restartCount }) => sum + restartCount, 0);
  }

  /** Waits until the pool has exactly this many pods, and all of them are ready and new. */
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
   * Runs an action while clients stream speech, and lets each client complete one more request afterwards.
   * Every request must succeed, and no stream or context may be interrupted. Each socket also completes one more
   * context.
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
    const { ok, contexts, reconnects, failed } = report;
    const overSockets = options.sockets ? ` and ${contexts} contexts (${reconnects} reconnections)` : "";
    console.info(`${what}: ${ok} streams${overSockets} completed, ${failed} failed or interrupted`);
    expect(report).toMatchObject({ failed: 0, failures: [] });
    // All responses of mist have the same size, because mist is deterministic. Responses of arcana differ in
    // size.
    if (body.modelId === "mist") {
      expect(report.sizes).toEqual(options.streams === 0 ? [] : [expect.any(Number)]);
      expect(report.contextSizes).toEqual(options.sockets ? [expect.any(Number)] : []);
    }
    return report;
  }

  #podsBy(selector = ""): Promise<KubeObject[]> {
    const both = [`${labels.deployment}=${this.name}`, selector].filter((part) => part !== "");
    return this.#world.kubectl.list("pods", both.join(","));
  }
}

function namesOfRemaining(pods: readonly KubeObject[]): string[] {
  return pods
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)
    .sort();
}
