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

async function judged(
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
  it("allows everything until it expires", async () => {
    const result = await judged({}, one);
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
  ])("limits replicas beyond its %s", async (_what, claims, spec, reason, grants, said) => {
    const found = await judged(claims, [{ ...one[0], ...spec }]);
    expect(found).toMatchObject({ valid: false, reason, grants, message: expect.stringContaining(said) });
  });

  it("never removes running replicas, independent of the order of pools", async () => {
    const models = [
      { name: "a", replicas: 5 },
      { name: "b", replicas: 3 },
    ];
    const result = await judged({ maxStreams: 64 }, models, { pools: [pool("a", 0), pool("b", 3)] });
    expect(result.grants).toBe("a 1, b 3");
    expect(result.message).toContain("Pool a gets 1 of 5 replicas.");
  });

  it("with lower limits keeps running replicas and reports it", async () => {
    const result = await judged({ maxStreams: 16 }, one, { pools: [pool("a", 3)] });
    expect(result).toMatchObject({ valid: false, reason: "TooManyStreams", grants: "a 3" });
    expect(result.message).toContain("Running pods continue");
  });

  it("allows a pool to scale down, and follows its scaler if the spec sets no replicas", async () => {
    expect((await judged({}, one, { pools: [pool("a", 9)] })).grants).toBe("a 3");
    const scaled = [pool("a", 1, { replicas: 4 })];
    expect((await judged({}, [{ name: "a" }], { pools: scaled })).grants).toBe("a 4");
  });
});

describe("a license that is not valid", () => {
  it.each([
    ["missing", undefined, {}, "Missing"],
    ["expired", { exp: seconds - 2 * 86_400 }, {}, "Expired"],
    ["not yet good", { nbf: seconds + 600 }, {}, "Invalid"],
    ["forged", undefined, { license: forged }, "Invalid"],
  ])(
    "holds all changes if it is %s, and the message names the Secret",
    async (_what, claims, more, reason) => {
      const fresh = await judged(claims, one, more);
      expect(fresh).toMatchObject({
        valid: false,
        reason,
        grants: "a held at 0",
        api: { held: true, replicas: 0 },
      });
      expect(fresh.message).toContain("Secret ns/license, key license.jwt.");
      const serving = { pools: [pool("a", 2)], api: { deployment: running(1), pods: [] } };
      const later = await judged(claims, one, { ...more, ...serving });
      expect(later).toMatchObject({ grants: "a held at 2", api: { held: true, replicas: 1 } });
    },
  );

  it("allows everything in its grace period, and the message has its end", async () => {
    const result = await judged({ exp: seconds - 60 }, one);
    expect(result).toMatchObject({ valid: false, reason: "Expired", grants: "a 3" });
    expect(result.changesAt).toBe(now - 60_000 + 86_400_000);
  });

  const lastValid = { id: "1", models: ["mist"], maxGpus: 0, maxStreams: 32, graceDays: 1 };
  it.each([
    ["was good before", { state: "valid" }, now],
    ["failed earlier", { state: "grace", failedAt: "2025-12-31T00:00:00Z" }, now - 86_400_000],
    [
      "had expired before it vanished",
      { state: "grace", expiresAt: "2025-12-31T12:00:00Z" },
      now - 43_200_000,
    ],
    [
      "was in grace, as its issuer was not reachable, before it vanished",
      {
        state: "grace",
        expiresAt: "2026-02-01T00:00:00Z",
        graceUntil: "2026-01-01T06:00:00Z",
        lastValid,
      },
      now - 64_800_000,
    ],
    ["had never been good", { state: "missing" }, undefined],
    ["was past its grace", { state: "expired" }, undefined],
  ] as const)(
    "that vanishes counts grace from the last good verdict where it %s",
    async (_what, last, failedAt) => {
      const result = await judged(undefined, one, {}, last);
      expect(result.failedAt).toBe(failedAt);
      expect(result.verdict.state).toBe(failedAt === undefined ? "missing" : "grace");
    },
  );

  const last = (limits: object) => ({
    lastValid: { ...lastValid, ...limits },
  });

  it.each([
    ["vanished", {}],
    ["was spoilt", { license: forged }],
  ])("allows no more than the last valid one if it %s", async (_what, more) => {
    const fifty = [{ name: "a", replicas: 50, maxConcurrentStreams: 16 }];
    const result = await judged(undefined, fifty, { ...more, pools: [pool("a", 1)] }, last({}));
    expect(result).toMatchObject({ grants: "a 2", lastValid: last({}).lastValid });
    expect(result.verdict.graceUntil).toBe(now + 86_400_000);
    const other = await judged(undefined, fifty, more, last({ models: ["arcana"] }));
    expect(other.grants).toBe("a held at 0");
  });

  it("allows no additional replica if its limits are unknown", async () => {
    const result = await judged(undefined, one, { pools: [pool("a", 1)] }, { state: "valid" });
    expect(result.verdict.state).toBe("grace");
    expect(result.grants).toBe("a held at 1");
  });

  it("still counts running replicas for the TtsDeployments that share it", async () => {
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
  const greedy = [{ name: "a", replicas: 900, maxConcurrentStreams: 1000, accelerator: { count: 8 } }];

  it("lets everything run, and says that the Secret which the spec names is not read", async () => {
    const result = await judged(undefined, greedy, unlicensed);
    expect(result).toMatchObject({ valid: true, reason: "NotRequired", grants: "a 900" });
    expect(result).toMatchObject({ api: { held: false, replicas: 1 }, failedAt: undefined });
    expect(result.limits.get("a")).toBe(Number.POSITIVE_INFINITY);
    expect(result.changesAt).toBeUndefined();
    expect(result.message).toBe(
      "No license is required, because no license key is trusted. Secret ns/license, which spec.license names, is not read.",
    );
  });

  it("needs no spec.license", async () => {
    const deployment = ttsDeployment({ license: undefined });
    const result = await decideLicense(observed(deployment, unlicensed), { keys: [] });
    expect(result).toMatchObject({
      valid: true,
      message: "No license is required, because no license key is trusted.",
    });
  });

  it.each(["expired", "invalid", "missing", "grace"] as const)(
    "lifts what held back pods while the license was %s, and remembers the limits",
    async (state) => {
      const lastValid = { id: "1", models: [], maxGpus: 0, maxStreams: 1, graceDays: 1 };
      const last = { state, failedAt: "2025-12-31T00:00:00Z", lastValid };
      const result = await judged(undefined, greedy, unlicensed, last);
      expect(result).toMatchObject({ grants: "a 900", failedAt: undefined, lastValid });
    },
  );

  it("takes no share of the license that was valid before", async () => {
    const shares = new LicenseAllocations();
    shares.take("ns/demo", { license: "1", use: { gpus: 1, streams: 1 }, isShort: false });
    await decideLicense(observed(ttsDeployment(), unlicensed), { keys: [] }, shares);
    expect(shares.elsewhere("1", "ns/other")).toEqual({ gpus: 0, streams: 0 });
  });

  it("starts its grace period when it becomes required; running pods stay, and none is added", async () => {
    const serving = { pools: [pool("a", 2)], api: { deployment: running(1), pods: [] } };
    const result = await judged(undefined, one, serving, { state: "not_required" });
    expect(result).toMatchObject({ valid: false, reason: "Missing", failedAt: now, grants: "a held at 2" });
    expect(result.verdict).toMatchObject({ state: "grace", graceUntil: now + 3 * 86_400_000 });
  });

  it("has a grace period of three days when it becomes required, whatever longer one the spec names", async () => {
    const license = { secretRef: { name: "license" }, gracePeriod: "2160h" };
    const deployment = ttsDeployment({ license });
    deployment.status = { license: { state: "not_required" } } as TtsDeploymentStatus;
    const { verdict } = await decideLicense(observed(deployment), issuer.keys);
    expect(verdict.graceUntil).toBe(now + 3 * 86_400_000);
  });
});
