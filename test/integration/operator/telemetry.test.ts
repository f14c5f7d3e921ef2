import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { V1Container } from "../../../operator/manifest.ts";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { installForeignKinds, removeForeignKinds } from "../../support/foreign-kinds.ts";
import { installCrds } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

let plane: ControlPlane;

beforeAll(async () => {
  plane = await controlPlane({ controllerManager: true, prepare: installCrds });
});
afterAll(() => plane.stop());

const openHouse = () => OperatorHouse.open({}, plane.address);
const installMonitors = () => installForeignKinds(plane.address, "prometheusOperator");

const monitored = { telemetry: { serviceMonitor: { enabled: true, labels: { release: "prometheus" } } } };
const arcana = [{ name: "arcana", kind: "arcana", engine: { type: "vllm" } }];

async function monitorOf(house: OperatorHouse, kind: "ServiceMonitor" | "PodMonitor") {
  return (await house.get(kind, "demo"))?.spec;
}

describe("monitors for the Prometheus operator", () => {
  it("are told to be missing while it is not installed, nothing else waits, and they come with it", async () => {
    await using house = await openHouse();
    await house.ready(monitored, arcana);
    expect(await house.condition("TelemetryReady")).toMatch(/^False MonitorsNotInstalled/);
    expect(await house.condition("Ready")).toMatch(/^True/);
    await installMonitors();
    await house.until(async () => (await monitorOf(house, "ServiceMonitor")) !== undefined, "the monitor");
    await house.until(
      async () => (await house.condition("TelemetryReady")).startsWith("True"),
      "the condition",
    );
  });

  it("are made as its own schema wants them, and taken back", async () => {
    await installMonitors();
    await using house = await openHouse();
    await house.ready(monitored, arcana);
    expect(await house.condition("TelemetryReady")).toMatch(/^True Configured/);
    expect(await monitorOf(house, "ServiceMonitor")).toMatchObject({
      selector: { matchLabels: { "tts.svc.dev/deployment": "demo" } },
      endpoints: [{ port: "http", path: "/metrics", interval: "30s" }],
    });
    expect(await monitorOf(house, "PodMonitor")).toMatchObject({ podMetricsEndpoints: [{ port: "vllm" }] });
    await house.remove("PodMonitor", "demo");
    await house.until(async () => (await monitorOf(house, "PodMonitor")) !== undefined, "its return");
    await house.putDeployment({}, arcana);
    await house.until(async () => (await monitorOf(house, "ServiceMonitor")) === undefined, "its end");
    await house.until(async () => (await monitorOf(house, "PodMonitor")) === undefined, "the other's end");
  });

  it("go with its CRDs, and the operator goes on", async () => {
    await installMonitors();
    await using house = await openHouse();
    await house.ready(monitored, arcana);
    await removeForeignKinds(plane.address, "prometheusOperator");
    await house.until(
      async () => (await house.condition("TelemetryReady")).startsWith("False MonitorsNotInstalled"),
      "the condition",
    );
    await house.ready({ ...monitored, profile: "cloud" }, arcana);
  });
});

describe("the collector sidecar", () => {
  const exporter = { endpoint: "https://otlp.example.com:4317" };
  const auth = { bearer: { secretRef: { name: "otlp" } } };
  const telemetry = { resourceAttributes: { team: "voice" }, collector: { enabled: true, exporter, auth } };

  it("is in the pods that the API server stores, a missing credential is told, and noticed when it comes", async () => {
    await using house = await openHouse();
    await house.ready({ telemetry }, arcana);
    const { spec } = await house.workload("demo-arcana");
    const [collector] = (spec?.template.spec?.initContainers ?? []) as V1Container[];
    expect(collector).toMatchObject({ name: "collector", restartPolicy: "Always" });
    expect(await house.condition("TelemetryReady")).toMatch(/^False SecretMissing: .*\/otlp/);
    await house.admin.create({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "otlp", namespace: house.namespace },
      stringData: { token: "s3cret-of-the-backend" },
    });
    await house.until(
      async () => (await house.condition("TelemetryReady")).startsWith("True"),
      "the condition",
    );
    expect(JSON.stringify(await house.workload("demo-arcana"))).not.toContain("s3cret-of-the-backend");
  });

  it("is refused by the schema where it could not work", async () => {
    await using house = await openHouse();
    const wrongs: [object, string][] = [
      [{ ...telemetry, endpoint: "http://c:4317" }, "exclude each other"],
      [{ collector: { enabled: true } }, "must say where the collector sends to"],
      [
        { collector: { ...telemetry.collector, auth: { ...auth, basic: { secretRef: { name: "b" } } } } },
        "takes one of",
      ],
      [
        { collector: { ...telemetry.collector, exporter: { endpoint: "http://c:4317" } } },
        "needs an https:// endpoint",
      ],
      [{ endpoint: "collector:4317" }, "must be a URL"],
      [{ resourceAttributes: { "a=b": "c" } }, "names of attributes"],
    ];
    for (const [wrong, sentence] of wrongs)
      await expect(house.putDeployment({ telemetry: wrong }, arcana)).rejects.toThrow(sentence);
  });
});
