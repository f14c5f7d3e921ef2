import { expect, it } from "vitest";
import {
  apiDisruptionBudget,
  poolDisruptionBudget,
} from "../../../../operator/desired/pod-disruption-budget.ts";
import { ttsDeployment, ttsModelPool } from "../../../support/observed.ts";

/** As the disruption controller counts: of `pods` that are all healthy, how many may be evicted now. */
function evictable(maxUnavailable: unknown, pods: number): number {
  if (typeof maxUnavailable === "number") return Math.min(pods, maxUnavailable);
  return Math.min(pods, Math.ceil((Number.parseInt(String(maxUnavailable), 10) * pods) / 100));
}

it.each([[undefined], [1], [3], ["1%"], ["50%"]])(
  "a budget of %s lets a drain take a pod, however few there are",
  (maxUnavailable) => {
    const wish = maxUnavailable === undefined ? {} : { maxUnavailable };
    const deployment = ttsDeployment({ availability: { podDisruptionBudget: wish } });
    const budgets = [
      ...apiDisruptionBudget(deployment),
      ...poolDisruptionBudget(ttsModelPool({ podDisruptionBudget: wish })),
    ];
    expect(budgets).toHaveLength(2);
    for (const { spec } of budgets) {
      expect(spec).not.toHaveProperty("minAvailable");
      expect(spec?.unhealthyPodEvictionPolicy).toBe("AlwaysAllow");
      for (const pods of [1, 2, 100]) expect(evictable(spec?.maxUnavailable, pods)).toBeGreaterThanOrEqual(1);
    }
  },
);

it("a budget selects its own tier alone", () => {
  const [api] = apiDisruptionBudget(ttsDeployment());
  const [pool] = poolDisruptionBudget(ttsModelPool());
  expect(api?.spec?.selector?.matchLabels).toEqual({
    "tts.svc.dev/deployment": "demo",
    "app.kubernetes.io/component": "api",
  });
  expect(pool?.spec?.selector?.matchLabels).toEqual({
    "tts.svc.dev/deployment": "demo",
    "tts.svc.dev/pool": "mist",
  });
});

it("is none where it is switched off", () => {
  const off = { enabled: false };
  expect(apiDisruptionBudget(ttsDeployment({ availability: { podDisruptionBudget: off } }))).toEqual([]);
  expect(poolDisruptionBudget(ttsModelPool({ podDisruptionBudget: off }))).toEqual([]);
});
