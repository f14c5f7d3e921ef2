import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { installForeignKinds } from "../../support/foreign-kinds.ts";
import { installCrds } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/** The tests before the last describe need a cluster without the Gateway API. */
let plane: ControlPlane;
let house: OperatorHouse;

beforeAll(async () => {
  plane = await controlPlane({ controllerManager: true, prepare: installCrds });
});

afterAll(() => plane.stop());

beforeEach(async () => {
  house = await OperatorHouse.open({}, plane.address);
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
});

describe("the route", () => {
  it("leads host names to the API, follows the spec, and goes with it; pods stay", async () => {
    await house.ready({
      api: { route: { hostnames: ["tts.example.com"], ingress: { tlsSecretName: "tls" } } },
    });
    const service = await house.mustGet("Service", "demo-api");
    const { spec } = await house.mustGet("Ingress", "demo-api");
    expect(spec).toMatchObject({
      tls: [{ hosts: ["tts.example.com"], secretName: "tls" }],
      rules: [
        {
          host: "tts.example.com",
          http: {
            // neither "/" nor /metrics
            paths: ["/v1", "/dashboard", "/health", "/openapi.json"].map((path) => ({
              path,
              pathType: "Prefix",
              backend: { service: { name: service.metadata.name, port: { name: "http" } } },
            })),
          },
        },
      ],
    });
    const { generation } = (await house.workload("demo-api")).metadata;
    await house.putDeployment({ api: { route: { hostnames: ["other.example.com"], ingress: {} } } });
    await house.until(async () => {
      const changed = JSON.stringify((await house.mustGet("Ingress", "demo-api")).spec);
      return changed.includes("other.example.com") && !changed.includes("tls");
    }, "the other name");
    await house.putDeployment();
    await house.until(async () => (await house.get("Ingress", "demo-api")) === undefined, "the end of it");
    expect((await house.workload("demo-api")).metadata.generation).toBe(generation);
  });
});

const gatewayRef = { name: "public", namespace: "infra", sectionName: "https" };
const byGateway = { route: { hostnames: ["tts.example.com"], gatewayRef } };

describe("the route by a Gateway, without the Gateway API", () => {
  it("says what to install where the cluster has no Gateway API, and everything else is made", async () => {
    await house.ready();
    await house.putDeployment({ api: { ...byGateway, replicas: 2 } });
    const stalled = async () => house.condition("Stalled");
    await house.until(async () => (await stalled()).startsWith("True GatewayApiMissing"), "the reason");
    expect(await stalled()).toMatch(
      /no gateway\.networking\.k8s\.io\/v1\. Install the CRDs of the Gateway API, or use/,
    );
    expect(await house.replicas("demo-api")).toBe(2);
    await house.putDeployment({ api: { replicas: 2 } });
    await house.serve("demo-api");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
  });
});

describe("the route by a Gateway", () => {
  const route = () => house.get("HTTPRoute", "demo-api");

  beforeAll(() => installForeignKinds(plane.address, "gatewayApi"));

  it("joins it, is repaired, costs no write at rest, and goes when the spec has another", async () => {
    await house.ready({ api: byGateway });
    const made = await house.mustGet("HTTPRoute", "demo-api");
    expect(made.spec).toMatchObject({
      parentRefs: [{ name: "public", namespace: "infra", sectionName: "https" }],
      hostnames: ["tts.example.com"],
      rules: [{ backendRefs: [{ name: "demo-api", port: 8000 }], timeouts: { request: "0s" } }],
    });
    expect(await house.writesOfRestart()).toBe(0);
    await house.admin.replace({
      ...made,
      spec: { ...(made.spec as object), hostnames: ["stolen.example.com"] },
    });
    await house.until(async () => !JSON.stringify(await route()).includes("stolen"), "the repair");
    await house.remove("HTTPRoute", "demo-api");
    await house.until(
      async () => ((await route())?.metadata.uid ?? made.metadata.uid) !== made.metadata.uid,
      "it again",
    );
    await house.putDeployment({ api: { route: { hostnames: ["tts.example.com"], ingress: {} } } });
    await house.until(async () => (await route()) === undefined, "its end");
    await house.mustGet("Ingress", "demo-api");
  });

  it("that was given up while no operator ran is taken back by the next", async () => {
    await house.ready({ api: byGateway });
    await house.stopOperator();
    await house.putDeployment();
    await house.startOperator();
    await house.until(async () => (await route()) === undefined, "its end");
  });
});
