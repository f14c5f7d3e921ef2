import { expect, it } from "vitest";
import {
  apiDisruptionBudget,
  poolDisruptionBudget,
} from "../../../../operator/desired/pod-disruption-budget.ts";
import { ttsDeployment, ttsModelPool } from "../../../support/operator/observed.ts";

it.each([[undefined], [1], [3], ["1%"], ["50%"]])(
  "the disruption budgets have maxUnavailable %s of the spec, or 1",
  (maxUnavailable) => {
    // test/integration/operator/scheduled-pods.test.ts tests the effect in Kubernetes.
    const settings = maxUnavailable === undefined ? {} : { maxUnavailable };
    const budgets = [
      ...apiDisruptionBudget(ttsDeployment({ availability: { podDisruptionBudget: settings } })),
      ...poolDisruptionBudget(ttsModelPool({ podDisruptionBudget: settings })),
    ];
    expect(budgets).toHaveLength(2);
    for (const { spec } of budgets) {
      expect(spec).not.toHaveProperty("minAvailable");
      expect(spec?.maxUnavailable).toBe(maxUnavailable ?? 1);
      expect(spec?.unhealthyPodEvictionPolicy).toBe("AlwaysAllow");
    }
  },
);

it("a disruption budget selects only the pods of its tier", () => {
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

it("no disruption budget exists if it is disabled", () => {
  const off = { enabled: false };
  expect(apiDisruptionBudget(ttsDeployment({ availability: { podDisruptionBudget: off } }))).toEqual([]);
  expect(poolDisruptionBudget(ttsModelPool({ podDisruptionBudget: off }))).toEqual([]);
});
