import { beforeAll, describe, expect, it } from "vitest";
import { licenseNotRequired, readLicense } from "../../../../config/contract/license.ts";
import type { TtsDeploymentStatus } from "../../../../crds/tts-deployment.ts";
import type { ObservedDeployment, ObservedPool } from "../../../../operator/facts/observed.ts";
import { decideLicense } from "../../../../operator/license/decide.ts";
import { LicenseAllocations } from "../../../../operator/license/shares.ts";
import { now, observed, running, ttsDeployment, ttsModelPool } from "../../../support/operator/observed.ts";
import { type Issuer, licenseIssuer } from "../../../support/server/licenses.ts";

let issuer: Issuer;
const seconds = now / 1000;
const forged = await readLicense({ token: "a.b.c", keys: { keys: [] } });
const dates = { nbf: seconds - 1000, exp: seconds + 1000, graceDays: 1 };

beforeAll(async () => {
  issuer = await licenseIssuer();
});

function pool(name: string, replicas: number, spec: object = {}): ObservedPool {
  const workload = { deployment: replicas > 0 ? running(replicas) : undefined, pods: [] };
  return { pool: ttsModelPool({ pool: name, ...spec }), workload };
}

async function evaluate(
  claims: object | undefined,
  models: object[],
  more: Partial<ObservedDeployment> = {},
  last?: Partial<TtsDeploymentStatus["license"]>,
) {
  const deployment = ttsDeployment(
    {},
    models.map((model) => ({ kind: "mist", ...model })),
  );
  if (last) deployment.status = { license: { state: "valid", ...last } } as TtsDeploymentStatus;
  const token = claims && (await issuer.issue({ ...dates, ...claims }));
  const license = await readLicense({ token, keys: issuer.keys });
  const result = await decideLicense(observed(deployment, { license, ...more }), issuer.keys);
  const grants = [...result.pools].map(
    ([name, { held, replicas }]) => `${name} ${held ? "held at " : ""}${replicas}`,
  );
  return { ...result, grants: grants.join(", ") };
}

const one = [{ name: "a", replicas: 3 }];

describe("a valid license", () => {
  it("allows all replicas until it expires", async () => {
    const result = await evaluate({}, one);
    expect(result).toMatchObject({ valid: true, reason: "Valid", grants: "a 3", changesAt: now + 1000_000 });
    expect(result.api).toEqual({ held: false, replicas: 1 });
  });

  it.each([
    [
      "GPUs",
      { maxGpus: 3 },
      { accelerator: { count: 2 } },
      "TooManyGpus",
      "a 1",
      "allows 3 GPUs, and this TtsDeployment requests 6",
    ],
    [
      "streams",
      { maxStreams: 40 },
      { maxConcurrentStreams: 16 },
      "TooManyStreams",
      "a 2",
      "allows 40 streams",
    ],
    ["models", { models: ["arcana"] }, {}, "ModelNotLicensed", "a held at 0", "pools a (mist)"],
  ])("limits the replicas by its %s", async (_what, claims, spec, reason, grants, text) => {
    const result = await evaluate(claims, [{ ...one[0], ...spec }]);
    expect(result).toMatchObject({ valid: false, reason, grants, message: expect.stringContaining(text) });
  });

  it("never removes running replicas, for any order of pools", async () => {
    const models = [
      { name: "a", replicas: 5 },
      { name: "b", replicas: 3 },
    ];
    const result = await evaluate({ maxStreams: 64 }, models, { pools: [pool("a", 0), pool("b", 3)] });
    expect(result.grants).toBe("a 1, b 3");
    expect(result.message).toContain("Pool a gets 1 of 5 replicas.");
  });

  it("keeps running replicas above its limits, and reports this", async () => {
    const result = await evaluate({ maxStreams: 16 }, one, { pools: [pool("a", 3)] });
    expect(result).toMatchObject({ valid: false, reason: "TooManyStreams", grants: "a 3" });
    expect(result.message).toContain("Running pods continue");
  });

  it("allows a pool to scale down, and uses the replicas of the pool if the spec sets none", async () => {
    expect((await evaluate({}, one, { pools: [pool("a", 9)] })).grants).toBe("a 3");
    const scaled = [pool("a", 1, { replicas: 4 })];
    expect((await evaluate({}, [{ name: "a" }], { pools: scaled })).grants).toBe("a 4");
  });
});

describe("a license that is not valid", () => {
  it.each([
    ["missing", undefined, {}, "Missing"],
    ["expired", { exp: seconds - 2 * 86_400 }, {}, "Expired"],
    ["not valid yet", { nbf: seconds + 600 }, {}, "Invalid"],
    ["forged", undefined, { license: forged }, "Invalid"],
  ])(
    "blocks all changes if it is %s, and the message names the Secret",
    async (_what, claims, more, reason) => {
      const fresh = await evaluate(claims, one, more);
      expect(fresh).toMatchObject({
        valid: false,
        reason,
        grants: "a held at 0",
        api: { held: true, replicas: 0 },
      });
      expect(fresh.message).toContain("Secret ns/license, key license.jwt.");
      const serving = { pools: [pool("a", 2)], api: { deployment: running(1), pods: [] } };
      const later = await evaluate(claims, one, { ...more, ...serving });
      expect(later).toMatchObject({ grants: "a held at 2", api: { held: true, replicas: 1 } });
    },
  );

  it("allows all replicas in its grace period", async () => {
    const result = await evaluate({ exp: seconds - 60 }, one);
    expect(result).toMatchObject({ valid: false, reason: "Expired", grants: "a 3" });
    expect(result.changesAt).toBe(now - 60_000 + 86_400_000);
  });

  const lastValid = { id: "1", models: ["mist"], maxGpus: 0, maxStreams: 32, graceDays: 1 };
  it.each([
    ["was valid", { state: "valid" }, now],
    ["failed earlier", { state: "grace", failedAt: "2025-12-31T00:00:00Z" }, now - 86_400_000],
    ["had expired before", { state: "grace", expiresAt: "2025-12-31T12:00:00Z" }, now - 43_200_000],
    [
      "was in its grace period because its issuer was not reachable",
      {
        state: "grace",
        expiresAt: "2026-02-01T00:00:00Z",
        graceUntil: "2026-01-01T06:00:00Z",
        lastValid,
      },
      now - 64_800_000,
    ],
    ["had never been valid", { state: "missing" }, undefined],
    ["was past its grace period", { state: "expired" }, undefined],
  ] as const)(
    "that is deleted starts its grace period at the last valid evaluation if it %s",
    async (_what, last, failedAt) => {
      const result = await evaluate(undefined, one, {}, last);
      expect(result.failedAt).toBe(failedAt);
      expect(result.verdict.state).toBe(failedAt === undefined ? "missing" : "grace");
    },
  );

  const last = (limits: object) => ({
    lastValid: { ...lastValid, ...limits },
  });

  it.each([
    ["was deleted", {}],
    ["was changed", { license: forged }],
  ])("allows no more than the last valid license if it %s", async (_what, more) => {
    const fifty = [{ name: "a", replicas: 50, maxConcurrentStreams: 16 }];
    const result = await evaluate(undefined, fifty, { ...more, pools: [pool("a", 1)] }, last({}));
    expect(result).toMatchObject({ grants: "a 2", lastValid: last({}).lastValid });
    expect(result.verdict.graceUntil).toBe(now + 86_400_000);
    const other = await evaluate(undefined, fifty, more, last({ models: ["arcana"] }));
    expect(other.grants).toBe("a held at 0");
  });

  it("allows no additional replica if its limits are unknown", async () => {
    const result = await evaluate(undefined, one, { pools: [pool("a", 1)] }, { state: "valid" });
    expect(result.verdict.state).toBe("grace");
    expect(result.grants).toBe("a held at 1");
  });

  it("still reserves the running replicas in the license that other TtsDeployments share", async () => {
    const shares = new LicenseAllocations();
    const deployment = ttsDeployment({}, [
      { name: "a", kind: "mist", replicas: 2, maxConcurrentStreams: 16 },
    ]);
    deployment.status = { license: { state: "valid", ...last({}) } } as TtsDeploymentStatus;
    await decideLicense(observed(deployment), issuer.keys, shares);
    expect(shares.elsewhere("1", "ns/other")).toEqual({ gpus: 0, streams: 32 });
  });
});

describe("a license that is not required", () => {
  const unlicensed = { license: licenseNotRequired };
  const large = [{ name: "a", replicas: 900, maxConcurrentStreams: 1000, accelerator: { count: 8 } }];

  it("allows all replicas, and the message states that the Secret of the spec is not read", async () => {
    const result = await evaluate(undefined, large, unlicensed);
    expect(result).toMatchObject({ valid: true, reason: "NotRequired", grants: "a 900" });
    expect(result).toMatchObject({ api: { held: false, replicas: 1 }, failedAt: undefined });
    expect(result.limits.get("a")).toBe(Number.POSITIVE_INFINITY);
    expect(result.changesAt).toBeUndefined();
    expect(result.message).toBe(
      "No license is required, because no license key is trusted. Secret ns/license, which spec.license names, is not read.",
    );
  });

  it("does not need spec.license", async () => {
    const deployment = ttsDeployment({ license: undefined });
    const result = await decideLicense(observed(deployment, unlicensed), { keys: [] });
    expect(result).toMatchObject({
      valid: true,
      message: "No license is required, because no license key is trusted.",
    });
  });

  it.each(["expired", "invalid", "missing", "grace"] as const)(
    "allows all replicas after a license that was %s, and keeps the last valid limits",
    async (state) => {
      const lastValid = { id: "1", models: [], maxGpus: 0, maxStreams: 1, graceDays: 1 };
      const last = { state, failedAt: "2025-12-31T00:00:00Z", lastValid };
      const result = await evaluate(undefined, large, unlicensed, last);
      expect(result).toMatchObject({ grants: "a 900", failedAt: undefined, lastValid });
    },
  );

  it("frees the share of the license that was valid before", async () => {
    const shares = new LicenseAllocations();
    shares.take("ns/demo", { license: "1", use: { gpus: 1, streams: 1 }, isShort: false });
    await decideLicense(observed(ttsDeployment(), unlicensed), { keys: [] }, shares);
    expect(shares.elsewhere("1", "ns/other")).toEqual({ gpus: 0, streams: 0 });
  });

  it("starts a grace period when it becomes required, keeps running pods, and allows no new pod", async () => {
    const serving = { pools: [pool("a", 2)], api: { deployment: running(1), pods: [] } };
    const result = await evaluate(undefined, one, serving, { state: "not_required" });
    expect(result).toMatchObject({ valid: false, reason: "Missing", failedAt: now, grants: "a held at 2" });
    expect(result.verdict).toMatchObject({ state: "grace", graceUntil: now + 3 * 86_400_000 });
  });

  it("has a grace period of at most three days when it becomes required", async () => {
    const license = { secretRef: { name: "license" }, gracePeriod: "2160h" };
    const deployment = ttsDeployment({ license });
    deployment.status = { license: { state: "not_required" } } as TtsDeploymentStatus;
    const { verdict } = await decideLicense(observed(deployment), issuer.keys);
    expect(verdict.graceUntil).toBe(now + 3 * 86_400_000);
  });
});

describe("a canary", () => {
  const accelerator = { count: 1 };
  const rollout = { canary: { steps: [{ weight: 50, pauseSeconds: 60 }], analysis: {} } };
  const state = { phase: "Analysing", settings: "s", revision: "r", step: 0, weight: 50, traded: 0 };

  /** Evaluates a pool of four running pods with a canary of two pods, next to another pool. */
  async function withCanary(maxGpus: number, phase = "Analysing", running = 4) {
    const main = pool("a", running, { accelerator, rollout, replicas: 4 });
    const canary = { ...state, phase, since: "2026-01-01T00:00:00Z" };
    const status = { ...main.pool.status, desiredReplicas: 4, canary };
    main.pool.status = status as NonNullable<typeof main.pool.status>;
    const models = [
      { name: "a", replicas: 4, accelerator },
      { name: "b", replicas: 1, accelerator },
    ];
    const pools = [main, pool("b", 1, { accelerator })];
    return evaluate({ maxGpus }, models, { pools });
  }

  it.each<[number, number]>([
    [5, 0],
    [6, 1],
    [7, 2],
    [9, 2],
  ])(
    "with a license for %i GPUs and five GPUs in pools, the license allows %i pods of the canary",
    async (maxGpus, pods) => {
      const { canaries, limits, grants } = await withCanary(maxGpus);
      expect(canaries.get("a")).toBe(pods);
      expect(grants).toBe("a 4, b 1");
      // The GPUs of the canary are not available to other pools.
      expect(limits.get("b")).toBe(1 + maxGpus - 5 - pods);
    },
  );

  it("that was rolled back uses nothing", async () => {
    expect((await withCanary(9, "RolledBack")).canaries.get("a")).toBe(0);
  });

  it("whose pods replaced pods of the pool keeps the share of the pool", async () => {
    expect((await withCanary(5, "Analysing", 2)).grants).toBe("a 4, b 1");
  });

  it.each<[string, object, string]>([
    ["valid", {}, "a 4"],
    ["expired", { exp: seconds - 200_000 }, "a held at 4"],
  ])("never increases the replicas of its pool above what a license allows that is %s", async (_what, dates, grants) => {
    const main = pool("a", 4, { accelerator, rollout, replicas: 8 });
    const canary = { ...state, since: "2026-01-01T00:00:00Z" };
    const status = { ...main.pool.status, desiredReplicas: 4, canary };
    main.pool.status = status as NonNullable<typeof main.pool.status>;
    const models = [{ name: "a", replicas: 8, accelerator }];
    expect((await evaluate({ maxGpus: 4, ...dates }, models, { pools: [main] })).grants).toBe(grants);
  });

  it("is counted for other TtsDeployments of the same license", async () => {
    const shares = new LicenseAllocations();
    const main = pool("a", 4, { accelerator, rollout, replicas: 4 });
    const canary = { ...state, since: "2026-01-01T00:00:00Z" };
    main.pool.status = { ...main.pool.status, canary } as NonNullable<typeof main.pool.status>;
    const deployment = ttsDeployment({}, [{ name: "a", kind: "mist", replicas: 4, accelerator }]);
    const license = await readLicense({
      token: await issuer.issue({ ...dates, maxGpus: 9, jti: "shared" }),
      keys: issuer.keys,
    });
    await decideLicense(observed(deployment, { license, pools: [main] }), issuer.keys, shares);
    expect(shares.elsewhere("shared", "another/one").gpus).toBe(6);
  });
});
