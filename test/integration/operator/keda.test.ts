import { afterAll, beforeAll, expect, it } from "vitest";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { installForeignKinds } from "../../support/foreign-kinds.ts";
import { installCrds } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/** A control plane of its own, which begins without KEDA's CRDs. */
let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  plane = await controlPlane({ controllerManager: true, prepare: installCrds });
  house = await OperatorHouse.open({}, plane.address);
});

afterAll(async () => {
  await house[Symbol.asyncDispose]();
  await plane.stop();
});

const pool = (scaling: object) => ({ name: "mist", kind: "mist", scaling: { maxReplicas: 4, ...scaling } });

/** Nothing more is written. */
async function quiet(): Promise<void> {
  await house.idle();
  const writes = house.proxy.count("write");
  await house.advance(1_500);
  expect(house.proxy.count("write")).toBe(writes);
}

it("a pool that KEDA scales says so while KEDA is not installed and keeps its replicas; it gets a ScaledObject once it is", async () => {
  await house.ready({}, [pool({ provider: "KEDA", minReplicas: 1 })]);
  await house.until(
    async () => (await house.condition("ScalingReady")).startsWith("False KedaMissing"),
    "ScalingReady",
  );
  expect(await house.condition("Ready")).toMatch(/^True/);
  expect(await house.replicas("demo-mist")).toBe(1);
  await installForeignKinds(plane.address, "keda");
  await house.until(
    async () => (await house.get("ScaledObject", "demo-mist")) !== undefined,
    "a ScaledObject",
  );
  const made = await house.mustGet("ScaledObject", "demo-mist");
  expect(made.spec).toMatchObject({
    scaleTargetRef: { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsModelPool", name: "demo-mist" },
    minReplicaCount: 1,
    maxReplicaCount: 4,
    triggers: [
      {
        type: "metrics-api",
        metadata: {
          url: `http://demo-api.${house.namespace}.svc:8000/metrics`,
          valueLocation: 'svc_tts_pool_streams{pool="mist"}',
          aggregationType: "sum",
        },
      },
    ],
  });
  const conditions = [{ type: "Ready", status: "True", reason: "ScaledObjectReady", message: "ready" }];
  await house.setStatus(made, { conditions });
  await house.until(
    async () => (await house.condition("ScalingReady")).startsWith("True Following"),
    "ScalingReady",
  );
  await quiet();
  // KEDA is ready, and its HorizontalPodAutoscaler cannot read the metric
  const blind = {
    type: "HPAActive",
    status: "False",
    reason: "FailedGetExternalMetric",
    message: "no metric",
  };
  await house.setStatus(await house.mustGet("ScaledObject", "demo-mist"), {
    conditions: [...conditions, blind],
  });
  await house.until(
    async () =>
      (await house.condition("ScalingReady")) ===
      "False FailedGetExternalMetric: pool mist: ScaledObject demo-mist: no metric",
    "KEDA's word",
  );
  await house.putDeployment({}, [pool({})]);
  await house.until(async () => (await house.get("ScaledObject", "demo-mist")) === undefined, "its end");
});
