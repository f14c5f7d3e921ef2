import { describe, expect, it } from "vitest";
import type { TtsModelPoolStatus } from "../../../../crds/tts-model-pool.ts";
import type { Pod, TtsModelPool } from "../../../../operator/facts/observed.ts";
import { coldStartOf } from "../../../../operator/status/cold-start.ts";
import { pod, ttsModelPool } from "../../../support/operator/observed.ts";

type ColdStart = TtsModelPoolStatus["coldStart"];

/** Returns a time on the first day of 2026. */
const at = (seconds: number) =>
  `${new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString().slice(0, 19)}Z`;
const image = { image: "i:1", imageID: "", ready: true };

interface Start {
  created?: number;
  scheduled?: number;
  fetched?: [number, number][];
  started?: number;
  ready?: number;
  restartCount?: number;
  status?: string;
}

function startedPod(name: string, start: Start): Pod {
  const { created = 0, scheduled = 2, fetched = [], started = 12, ready = 20 } = start;
  const { restartCount = 0, status = "True" } = start;
  const found = pod(
    {
      conditions: [
        { type: "PodScheduled", status: "True", lastTransitionTime: at(scheduled) as unknown as Date },
        { type: "Ready", status, lastTransitionTime: at(ready) as unknown as Date },
      ],
      initContainerStatuses: fetched.map(([from, to], index) => {
        const terminated = { exitCode: 0, startedAt: at(from), finishedAt: at(to) };
        return { name: `fetch-${index}`, ...image, restartCount: 0, state: { terminated } } as never;
      }),
      containerStatuses: [
        {
          name: "mist",
          ...image,
          restartCount,
          state: { running: { startedAt: at(started) as unknown as Date } },
        },
      ],
    },
    name,
  );
  return { ...found, metadata: { ...found.metadata, creationTimestamp: at(created) } };
}

const poolWith = (coldStart?: ColdStart) =>
  ({ ...ttsModelPool(), status: { coldStart } }) as unknown as TtsModelPool;

describe("the cold start of a pool", () => {
  it("has the time of each phase", () => {
    const fetched: [number, number][] = [
      [5, 9],
      [9, 10],
    ];
    expect(coldStartOf(poolWith(), [startedPod("a", { fetched })])).toEqual({
      pod: "a",
      createdAt: at(0),
      schedulingSeconds: 2,
      imageSeconds: 5,
      modelSeconds: 5,
      warmUpSeconds: 8,
      totalSeconds: 20,
    });
  });

  it("has no negative time if the clocks of the nodes differ", () => {
    const found = coldStartOf(poolWith(), [
      startedPod("a", { created: 3, scheduled: 2, started: 1, ready: 9 }),
    ]);
    expect(found).toMatchObject({ schedulingSeconds: 0, imageSeconds: 0, warmUpSeconds: 8 });
  });

  it.each<[string, Start]>([
    ["is not ready", { status: "False" }],
    ["has restarted", { restartCount: 1 }],
    ["became ready again after its startup probe must have ended", { ready: 800 }],
  ])("ignores a pod that %s", (_what, start) => {
    expect(coldStartOf(poolWith(), [startedPod("a", start)])).toBeUndefined();
  });

  it("has the time of a model that loads for the longest time of its startup probe", () => {
    expect(coldStartOf(poolWith(), [startedPod("a", { ready: 612 })])?.warmUpSeconds).toBe(600);
  });

  it("has the time of a model whose startup probe podTemplate makes longer", () => {
    const slow = startedPod("a", { ready: 2000 });
    const startupProbe = { periodSeconds: 10, failureThreshold: 200 };
    const changed = { ...slow, spec: { containers: [{ name: "mist", startupProbe }] } };
    expect(coldStartOf(poolWith(), [changed])?.warmUpSeconds).toBe(1988);
  });

  it("is of the newest pod, and stays when this pod is ready again or deleted", () => {
    const both = [startedPod("old", {}), startedPod("new", { created: 1 })];
    const first = coldStartOf(poolWith(), both);
    expect(first?.pod).toBe("new");
    const again = [startedPod("old", { ready: 500 }), startedPod("new", { created: 1, ready: 600 })];
    expect(coldStartOf(poolWith(first), again)).toEqual(first);
    expect(coldStartOf(poolWith(first), [])).toEqual(first);
    expect(coldStartOf(poolWith(first), [startedPod("newer", { created: 90 })])?.pod).toBe("newer");
  });
});
