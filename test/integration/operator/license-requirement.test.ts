import { describe, expect, it } from "vitest";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

let house: OperatorHouse;

useOperatorHouse((opened) => {
  house = opened;
});

const noKeys = { licenseKeys: { keys: [] } };
const noLicense = { license: undefined };
const graceMs = 72 * 3_600_000;

/**
 * Creates a TtsDeployment without a license, and waits until it is ready with an operator that trusts no
 * license key.
 */
async function servesUnlicensed(): Promise<void> {
  await house.restart(noKeys);
  await house.putDeployment(noLicense);
  await house.serve("demo-api", "demo-mist");
  await house.untilReady();
}

const license = async (name = "demo") => (await house.deployment(name)).status?.license;

describe("an operator that trusts no license key", () => {
  it("starts the pods of a TtsDeployment without a license, and the routing table says that no license is required", async () => {
    await servesUnlicensed();
    expect(await house.condition("LicenseValid")).toBe(
      "True NotRequired: No license is required, because no license key is trusted.",
    );
    expect(await license()).toEqual({ state: "not_required" });
    expect(await house.routing()).toMatchObject({ licenseRequired: false });
    const { data } = await house.mustGet("ConfigMap", "demo-routing");
    expect(JSON.parse((data as Record<string, string>)["jwks.json"] ?? "")).toEqual({ keys: [] });
    const { volumes } = (await house.workload("demo-api")).spec?.template.spec ?? {};
    expect(volumes?.map(({ name }) => name)).not.toContain("license");
    expect(await house.kubectl("get", "ttsd", "demo")).toMatch(/demo +True +not_required/);
    expect(await house.writesOfRestart(noKeys)).toBe(0);
  });

  it("does not read the license Secret of a TtsDeployment", async () => {
    await house.restart(noKeys);
    await house.putLicense("no license at all");
    house.proxy.requests.splice(0);
    await house.putDeployment();
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
    await house.idle();
    expect(await house.condition("LicenseValid")).toContain(
      `Secret ${house.namespace}/license, which spec.license names, is not read.`,
    );
    const ofLicense = house.proxy.requests.filter(
      ({ path, query }) =>
        path.endsWith("/secrets/license") || query.get("fieldSelector") === "metadata.name=license",
    );
    expect(ofLicense).toEqual([]);
  });
});

describe("an operator that trusts license keys after a restart", () => {
  it("requires a license for a running TtsDeployment: pods stay, scale-ups wait, and the grace period begins", async () => {
    await servesUnlicensed();
    await house.restart();
    await house.untilCondition(
      "LicenseValid",
      /^False Missing: A license is required, and spec\.license is not/,
    );
    expect(await house.condition("LicenseValid")).toContain("name it in spec.license.secretRef");
    const { state, failedAt = "", graceUntil = "" } = (await license()) ?? {};
    expect(state).toBe("grace");
    expect(Date.parse(graceUntil)).toBe(Date.parse(failedAt) + graceMs);
    await house.until(async () => (await house.routing()).licenseFailedAt !== undefined, "the routing table");
    expect(await house.routing()).not.toHaveProperty("licenseRequired");
    expect(await house.condition("Ready")).toMatch(/^True/);

    await house.putDeployment({ ...noLicense, api: { replicas: 2 } }, [
      { name: "mist", kind: "mist", replicas: 3 },
    ]);
    await house.untilCondition("ModelsReady", /^False LicenseHold/);
    await house.advance(graceMs);
    await house.untilCondition("Ready", /^False LicenseMissing/);
    expect(await license()).toMatchObject({ state: "missing", failedAt });
    expect([await house.replicas("demo-api"), await house.replicas("demo-mist")]).toEqual([1, 1]);

    await house.putLicense(await house.issuer.issue({ exp: Math.floor(house.clock.nowMs() / 1000) + 3600 }));
    await house.putDeployment({ api: { replicas: 2 } }, [{ name: "mist", kind: "mist", replicas: 3 }]);
    await house.untilCondition("LicenseValid", /^True Valid/);
    await house.untilReplicas("demo-mist", 3);
    await house.untilReplicas("demo-api", 2);
    const { volumes } = (await house.workload("demo-api")).spec?.template.spec ?? {};
    expect(volumes?.map(({ name }) => name)).toContain("license");
  });

  it("starts no pod for a new TtsDeployment without a license", async () => {
    await house.putDeployment(noLicense);
    await house.untilCondition("LicenseValid", /^False Missing: A license is required/);
    await house.idle();
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
    expect(await license()).toEqual({ state: "missing" });
  });

  it("starts the delayed pods when it trusts no license key any more, without a change of the TtsDeployment", async () => {
    await house.putDeployment();
    await house.untilCondition("LicenseValid", /^False Missing/);
    await house.restart(noKeys);
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
    expect(await license()).toEqual({ state: "not_required" });
  });
});

describe("an operator that requires licenses only for classes with license.required", () => {
  const scope = { licenseScope: "Classes" } as const;
  const paid = { ...scope, classOfSettings: { license: { required: true } } };

  it("requires none of other TtsDeployments, and begins the grace period when the class requires one", async () => {
    await house.restart(scope);
    await house.putDeployment(noLicense);
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
    expect(await house.condition("LicenseValid")).toMatch(/^True NotRequired: .*no TtsClass requires one/);
    expect(await house.routing()).toMatchObject({ licenseRequired: false });
    const { data } = await house.mustGet("ConfigMap", "demo-routing");
    expect(JSON.parse((data as Record<string, string>)["jwks.json"] ?? "")).toEqual({ keys: [] });

    await house.restart(paid);
    await house.untilCondition("LicenseValid", /^False Missing: A license is required/);
    expect((await license())?.state).toBe("grace");
    await house.until(async () => !("licenseRequired" in (await house.routing())), "the routing table");
    await house.putLicense(await house.issuer.issue({ exp: Math.floor(house.clock.nowMs() / 1000) + 3600 }));
    await house.putDeployment();
    await house.untilCondition("LicenseValid", /^True Valid/);
  });

  it("starts no pod for a new TtsDeployment of such a class if no key is trusted", async () => {
    await house.restart({ ...paid, ...noKeys });
    await house.putLicense("not read");
    await house.putDeployment();
    await house.untilCondition(
      "LicenseValid",
      /^False Invalid: The TtsClass requires a license, but the operator/,
    );
    await house.idle();
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
  });
});
