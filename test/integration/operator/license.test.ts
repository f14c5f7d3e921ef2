import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiPod, putApiPod } from "../../support/operator/api-pods.ts";
import { untilForgotten } from "../../support/operator/held-requests.ts";
import { OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

let house: OperatorHouse;

useOperatorHouse((opened) => {
  house = opened;
});

describe("a license", () => {
  it("that is missing starts no pod and is reported, and its creation is detected", async () => {
    await house.putDeployment();
    await house.untilCondition("LicenseValid", /^False Missing/);
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
    await house.untilReady();
  });

  it("that is forged starts no pod", async () => {
    const [head, , signature] = (await house.issuer.issue()).split(".");
    const claims = Buffer.from(JSON.stringify({ sub: "me" })).toString("base64url");
    await house.putLicense(`${head}.${claims}.${signature}`);
    await house.putDeployment();
    await house.untilCondition("LicenseValid", /^False Invalid/);
    await house.idle();
    expect(await house.get("Deployment", "demo-api")).toBeUndefined();
  });

  it("that expires has a grace period. Afterwards rollouts and scale-ups wait, and the pods stay", async () => {
    const exp = Math.floor(house.clock.nowMs() / 1000) + 3_600;
    await house.ready({}, undefined, { exp, graceDays: 1 });

    expect((await house.deployment()).status?.license.state).toBe("valid");
    await house.advance(3_601_000);
    expect((await house.deployment()).status?.license.state).toBe("grace");
    expect(await house.condition("LicenseValid")).toMatch(/^False Expired: .*serving continues until/);
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
    await house.untilCondition("RolloutHealthy", /^False LicenseHold/);

    await house.putLicense(await house.issuer.issue());
    await house.untilReplicas("demo-mist", 4);
    expect(JSON.stringify((await house.workload("demo-mist")).spec)).toContain("NEW");
    await house.untilReplicas("demo-api", 3);
  });

  it("that is deleted has a grace period, which the routing table reports to API pods", async () => {
    await house.ready({}, undefined, { maxStreams: 40, graceDays: 1 });
    const removedMs = house.clock.nowMs();
    await house.remove("Secret", "license");
    await house.untilCondition("LicenseValid", /^False Missing/);
    const { status } = await house.deployment();
    expect(status?.license.state).toBe("grace");
    const failedMs = Date.parse(status?.license.failedAt ?? "");
    // The status has a resolution of one second.
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
    await house.untilCondition("LicenseValid", /^True/);
    expect(failedAt).toBe(status?.license.failedAt);
    expect((await house.routing()).licenseFailedAt).toBeUndefined();
  });

  it("that does not cover a model prevents only the start of its pool", async () => {
    await house.putLicense(await house.issuer.issue({ models: ["mist", "mistv2"] }));
    await house.putDeployment({}, [
      { name: "mist", kind: "mist" },
      { name: "arcana", kind: "arcana" },
    ]);
    await house.serve("demo-api", "demo-mist");
    await house.until(
      async () => (await house.deployment()).status?.summary.models === "1/2",
      "one ready model of two",
    );
    expect(await house.condition("LicenseValid")).toMatch(/^False ModelNotLicensed: .*arcana \(arcana\)/);
    await house.untilCondition("ModelsReady", /^False LicenseHold: pool arcana/);
    expect(await house.get("Deployment", "demo-arcana")).toBeUndefined();
  });

  it("that allows fewer streams limits a scale-up", async () => {
    await house.ready({}, undefined, { maxStreams: 40 });
    await house.kubectl("scale", "ttsmp/demo-mist", "--replicas=3");
    await house.untilCondition("LicenseValid", /^False TooManyStreams/);
    await house.idle();
    expect(await house.replicas("demo-mist")).toBe(2);
  });
});

const mist = (replicas: number) => [{ name: "mist", kind: "mist", replicas, maxConcurrentStreams: 16 }];

describe("a license that several TtsDeployments share", () => {
  it("limits their streams together, also with a new leader, and freed capacity is allocated again", async () => {
    await house.putLicense(await house.issuer.issue({ maxStreams: 32 }));
    await house.putDeployment({}, mist(2));
    await house.untilReplicas("demo-mist", 2);
    await house.putDeployment({}, mist(1), "other");
    await house.untilReplicas("other-mist", 0);
    expect(await house.condition("LicenseValid", "other")).toMatch(
      /^False TooManyStreams: The license allows 32 streams in total\. Other TtsDeployments with this license use 32/,
    );
    await house.restart();
    await house.putDeployment({}, mist(2), "other");
    await house.idle();
    expect(await house.replicas("other-mist")).toBe(0);
    expect(await house.replicas("demo-mist")).toBe(2);
    await house.putDeployment({}, mist(1));
    await house.untilReplicas("other-mist", 1);
    await house.remove("TtsDeployment", "demo");
    await house.untilReplicas("other-mist", 2);
    await house.untilCondition("LicenseValid", /^True/, "other");
  });

  it("is allocated again if the response to a write arrives after the deletion of the TtsDeployment", async () => {
    await house.putLicense(await house.issuer.issue({ maxStreams: 32 }));
    await house.putDeployment({}, mist(2));
    await house.untilReplicas("demo-mist", 2);
    await house.putDeployment({}, mist(2), "other");
    await house.untilReplicas("other-mist", 0);
    // The test waits until the operator is idle, so that the next status is the result of the following
    // change.
    await house.idle();
    const deletionSeen = Promise.withResolvers<void>();
    house.proxy.rule = ({ method, path }) =>
      method === "PATCH" && path.endsWith("/ttsdeployments/demo/status")
        ? { kind: "hold", when: "after", until: deletionSeen.promise }
        : undefined;
    await house.putDeployment({}, mist(1));
    const isReported = async () => {
      const { metadata, status } = await house.deployment();
      return status?.observedGeneration === metadata.generation;
    };
    await house.until(isReported, "the status of the change");
    await house.remove("TtsDeployment", "demo");
    await untilForgotten(house, "TtsDeployment", "demo");
    deletionSeen.resolve();
    await house.untilReplicas("other-mist", 2);
  });

  it("has one warning before it expires, also after a restart, and another warning for another license", async () => {
    const dayS = 86_400;
    const warnings = async () =>
      (await house.admin.list("Event", { namespace: house.namespace }))
        .filter(({ reason }) => reason === "LicenseExpiresSoon")
        .map(({ note }) =>
          /The license (\S+) .*in less than (\w+ \w+)/.exec(String(note))?.slice(1).join(": "),
        );
    const claimsOf = (days: number, jti: string) => {
      const exp = Math.floor(house.clock.nowMs() / 1000) + days * dayS;
      return { jti, nbf: exp - 365 * dayS, exp };
    };
    await house.putLicense(await house.issuer.issue(claimsOf(5, "first")));
    await house.putDeployment({}, mist(1));
    await house.until(async () => (await warnings()).length > 0, "the warning");
    expect((await house.deployment()).status?.license).toMatchObject({ id: "first", expiresWithinDays: 7 });
    await house.restart();
    await house.idle();
    expect(await warnings()).toEqual(["first: 7 days"]);
    await house.putLicense(await house.issuer.issue(claimsOf(20, "second")));
    await house.until(async () => (await warnings()).length > 1, "the second warning");
    expect((await warnings()).toSorted()).toEqual(["first: 7 days", "second: 30 days"]);
  });
});

describe("a license with an online check", () => {
  let api: ApiPod;

  beforeEach(async () => {
    api = await ApiPod.start();
  });

  afterEach(() => api[Symbol.asyncDispose]());

  const endpoint = "https://licenses.example.com/v1/status";

  async function serving(gracePeriod = "72h"): Promise<void> {
    await house.ready({
      license: { secretRef: { name: "license" }, endpoint, checkInterval: "2h", gracePeriod },
    });
    await putApiPod(house, api.port);
  }

  const check = async () => (await house.routing()).licenseCheck;
  const license = async () => (await house.deployment()).status?.license;
  /** Returns an earlier time by the operator's clock, in seconds since the epoch. */
  const hoursAgo = (hours: number) => Math.floor(house.clock.nowMs() / 1000) - hours * 3600;

  it("is checked by API pods, and the routing table keeps the response across restarts of the operator", async () => {
    await serving();
    const [container] = (await house.workload("demo-api")).spec?.template.spec?.containers ?? [];
    expect(container?.env).toEqual(
      expect.arrayContaining([
        { name: "SVC_TTS_LICENSE_ENDPOINT", value: endpoint },
        { name: "SVC_TTS_LICENSE_CHECK_SECONDS", value: "7200" },
      ]),
    );
    expect(await license()).toMatchObject({ state: "valid", checkSince: expect.any(String) });
    expect(await check()).toEqual({ since: expect.any(String) });
    const iat = hoursAgo(1);
    const answer = await house.issuer.answer({ iat });
    api.hear(answer);
    await house.until(
      async () => (await license())?.lastCheckTime !== undefined,
      "the response of the issuer",
    );
    expect(Date.parse((await license())?.lastCheckTime ?? "")).toBe(iat * 1000);
    expect(await license()).not.toHaveProperty("checkSince");
    await house.until(async () => (await check())?.answer === answer, "the routing table");
    await house.stopOperator();
    await api[Symbol.asyncDispose]();
    await house.startOperator();
    await house.idle();
    expect(await check()).toEqual({ answer });
    expect(await house.condition("Ready")).toMatch(/^True/);
  });

  it("that is revoked has a grace period and an event. Afterwards changes wait, and the pods stay", async () => {
    await serving("10m");
    api.hear(await house.issuer.answer({ iat: hoursAgo(1) }));
    await house.until(async () => (await check())?.answer !== undefined, "the response of the issuer");
    api.hear(await house.issuer.answer({ status: "revoked", reason: "contract ended" }));
    await house.untilCondition(
      "LicenseValid",
      /^False Revoked: The license was revoked by its issuer: contract ended/,
    );
    expect((await license())?.state).toBe("grace");
    await house.advance(601_000);
    expect((await license())?.state).toBe("invalid");
    await house.putDeployment({
      license: { secretRef: { name: "license" }, endpoint, checkInterval: "2h", gracePeriod: "10m" },
      api: { replicas: 3 },
    });
    await house.untilCondition("Ready", /^False LicenseRevoked/);
    await house.idle();
    expect((await house.workload("demo-api")).spec?.replicas).toBe(1);
    const events = await house.admin.list("Event", { namespace: house.namespace });
    expect(events.map(({ reason }) => reason)).toContain("Revoked");
    api.hear(await house.issuer.answer({ iat: hoursAgo(0) }));
    await house.untilCondition("LicenseValid", /^True/);
    await house.untilReplicas("demo-api", 3);
  });

  it("that cannot be checked has a grace period after the last response of the issuer", async () => {
    await serving();
    const iat = hoursAgo(5);
    api.hear(await house.issuer.answer({ iat }));
    await house.untilCondition(
      "LicenseValid",
      /^False Unconfirmed: The license's issuer has not been reachable since .*serving continues until/,
    );
    const { state, graceUntil } = (await license()) ?? {};
    expect(state).toBe("grace");
    expect(Date.parse(graceUntil ?? "") / 1000).toBe(Math.floor(iat) + (2 + 72) * 3600);
    expect(await house.condition("Ready")).toMatch(/^True/);
  });

  it("ignores a response that the issuer did not sign, and a response about another license", async () => {
    await serving();
    const otherIssuer = await OperatorHouse.open();
    api.hear(await otherIssuer.issuer.answer({ status: "revoked" }));
    await house.hears(api);
    api.hear(await house.issuer.answer({ jti: "2", status: "revoked" }));
    await house.hears(api);
    expect(await house.condition("LicenseValid")).toMatch(/^True/);
    expect(await check()).toEqual({ since: expect.any(String) });
    await otherIssuer[Symbol.asyncDispose]();
  });
});
