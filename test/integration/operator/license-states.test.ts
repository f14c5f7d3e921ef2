import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

let house: OperatorHouse;

beforeEach(async () => {
  house = await OperatorHouse.open();
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
});

describe("the license", () => {
  it("that is missing starts no pod, says so, and is noticed when it comes", async () => {
    await house.putDeployment();
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False Missing"),
      "Missing",
    );
    await house.idle();
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
    expect(await house.get("Deployment", "demo-mist")).toBeUndefined();
    expect(await house.condition("LicenseValid")).toContain(
      `Secret ${house.namespace}/license, key license.jwt`,
    );
    expect(await house.condition("Ready")).toMatch(/^False LicenseMissing/);
    expect(await house.condition("Stalled")).toMatch(/^True LicenseMissing/);
    await house.putLicense(await house.issuer.issue());
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
  });

  it("that is forged starts no pod", async () => {
    const [head, , signature] = (await house.issuer.issue()).split(".");
    const claims = Buffer.from(JSON.stringify({ sub: "me" })).toString("base64url");
    await house.putLicense(`${head}.${claims}.${signature}`);
    await house.putDeployment();
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False Invalid"),
      "Invalid",
    );
    await house.idle();
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
  });

  it("that expires while serving counts down its grace, then holds rollouts and scale-ups but no pod", async () => {
    const exp = Math.floor(house.clock.nowMs() / 1000) + 3_600;
    await house.putLicense(await house.issuer.issue({ exp, graceDays: 1 }));
    await house.putDeployment();
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");

    expect((await house.deployment()).status?.license.state).toBe("valid");
    await house.advance(3_601_000);
    expect((await house.deployment()).status?.license.state).toBe("grace");
    expect(await house.condition("LicenseValid")).toMatch(/^False Expired: .*serving goes on until/);
    expect(await house.condition("Ready")).toMatch(/^True/);

    await house.advance(86_400_000);
    expect((await house.deployment()).status?.license.state).toBe("expired");
    await house.putDeployment({ api: { replicas: 3 } }, [
      { name: "mist", kind: "mist", replicas: 4, env: [{ name: "NEW", value: "1" }] },
    ]);
    await house.until(
      async () => (await house.deployment()).status?.observedGeneration === 2,
      "the new generation",
    );
    await house.idle();
    expect(await house.replicas("demo-api")).toBe(1);
    expect(await house.replicas("demo-mist")).toBe(1);
    expect(JSON.stringify((await house.workload("demo-mist")).spec)).not.toContain("NEW");
    expect(await house.condition("Ready")).toMatch(/^False LicenseExpired/);
    const held = async () => (await house.condition("RolloutHealthy")).startsWith("False LicenseHold");
    await house.until(held, "the hold");

    await house.putLicense(await house.issuer.issue());
    await house.until(async () => (await house.replicas("demo-mist")) === 4, "the scale-up");
    expect(JSON.stringify((await house.workload("demo-mist")).spec)).toContain("NEW");
    await house.until(async () => (await house.replicas("demo-api")) === 3, "the API's");
  });

  it("that vanishes while serving starts its grace, which API pods are told of", async () => {
    await house.putLicense(await house.issuer.issue({ maxStreams: 40, graceDays: 1 }));
    await house.putDeployment();
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
    const removedMs = house.clock.nowMs();
    await house.remove("Secret", "license");
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False Missing"),
      "Missing",
    );
    const { status } = await house.deployment();
    expect(status?.license.state).toBe("grace");
    const failedMs = Date.parse(status?.license.failedAt ?? "");
    // the status has whole seconds
    expect(failedMs).toBeGreaterThan(removedMs - 1_000);
    expect(failedMs).toBeLessThanOrEqual(house.clock.nowMs());
    expect(Date.parse(status?.license.graceUntil ?? "")).toBe(failedMs + 86_400_000);
    await house.until(async () => (await house.routing()).licenseFailedAt !== undefined, "the routing table");
    expect(await house.condition("Ready")).toMatch(/^True/);
    expect((await house.routing()).lastLicense).toEqual({
      models: ["mist", "mistv2", "arcana"],
      graceDays: 1,
    });

    await house.stopOperator();
    await house.putDeployment({}, [{ name: "mist", kind: "mist", replicas: 50 }]);
    await house.startOperator();
    await house.until(async () => (await house.replicas("demo-mist")) !== 1, "more replicas");
    await house.idle();
    expect(await house.replicas("demo-mist")).toBe(2);
    const failedAt = (await house.deployment()).status?.license.failedAt;
    await house.putLicense(await house.issuer.issue({ maxStreams: 1_000 }));
    await house.until(async () => (await house.condition("LicenseValid")).startsWith("True"), "Valid");
    expect(failedAt).toBe(status?.license.failedAt);
    expect((await house.routing()).licenseFailedAt).toBeUndefined();
  });

  it("that does not cover a model keeps that pool alone from starting", async () => {
    await house.putLicense(await house.issuer.issue({ models: ["mist", "mistv2"] }));
    await house.putDeployment({}, [
      { name: "mist", kind: "mist" },
      { name: "arcana", kind: "arcana" },
    ]);
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.deployment()).status?.summary.models === "1/2", "one of two");
    expect(await house.condition("LicenseValid")).toMatch(/^False ModelNotLicensed: .*arcana \(arcana\)/);
    const held = async () =>
      (await house.condition("ModelsReady")).startsWith("False LicenseHold: pool arcana");
    await house.until(held, "the hold");
    expect(await house.get("Deployment", "demo-arcana")).toBeUndefined();
  });

  it("that allows fewer GPUs than are asked for lets as many run as it allows", async () => {
    await house.putLicense(await house.issuer.issue({ maxGpus: 3 }));
    await house.putDeployment({}, [
      { name: "arcana", kind: "arcana", replicas: 2, accelerator: { count: 2 } },
    ]);
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False TooManyGpus"),
      "TooManyGpus",
    );
    expect(await house.condition("LicenseValid")).toContain("allows 3 GPUs and 4 are asked for");
    await house.until(async () => (await house.replicas("demo-arcana")) === 1, "one replica");
  });

  it("that allows fewer streams holds back a scale-up at once", async () => {
    await house.putLicense(await house.issuer.issue({ maxStreams: 40 }));
    await house.putDeployment();
    await house.serve("demo-api", "demo-mist");
    await house.until(async () => (await house.condition("Ready")).startsWith("True"), "Ready");
    const address = inject("controlPlane");
    await kubectlOrThrow(address, ["scale", "-n", house.namespace, "ttsmp/demo-mist", "--replicas=3"]);
    await house.until(
      async () => (await house.condition("LicenseValid")).startsWith("False TooManyStreams"),
      "TooManyStreams",
    );
    await house.idle();
    expect(await house.replicas("demo-mist")).toBe(2);
  });
});
