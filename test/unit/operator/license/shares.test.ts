import { describe, expect, it } from "vitest";
import { readLicense } from "../../../../config/contract/license.ts";
import type { TtsDeployment } from "../../../../operator/facts/observed.ts";
import { decideLicense } from "../../../../operator/license/decide.ts";
import { LicenseAllocations } from "../../../../operator/license/shares.ts";
import { now, observed, ttsDeployment } from "../../../support/operator/observed.ts";
import { licenseIssuer } from "../../../support/server/licenses.ts";

const issuer = await licenseIssuer();
const dates = { nbf: now / 1000 - 60, exp: now / 1000 + 3600 };
const gpu = { accelerator: { count: 1 }, maxConcurrentStreams: 1 };

function named(name: string, replicas: number): TtsDeployment {
  const deployment = ttsDeployment({}, [{ name: "m", kind: "mist", replicas, ...gpu }]);
  return { ...deployment, metadata: { ...deployment.metadata, name } };
}

async function judged(shares: LicenseAllocations, name: string, replicas: number, claims: object = {}) {
  const token = await issuer.issue({ ...dates, maxGpus: 4, jti: "shared", ...claims });
  const license = await readLicense({ token, keys: issuer.keys });
  const result = await decideLicense(observed(named(name, replicas), { license }), issuer.keys, shares);
  return { granted: result.pools.get("m")?.replicas, reason: result.reason, message: result.message };
}

describe("a license that several TtsDeployments share", () => {
  it("has its limits once for all of them", async () => {
    const shares = new LicenseAllocations();
    expect(await judged(shares, "a", 3)).toMatchObject({ granted: 3, reason: "Valid" });
    const second = await judged(shares, "b", 3);
    expect(second).toMatchObject({ granted: 1, reason: "TooManyGpus" });
    expect(second.message).toBe(
      "The license allows 4 GPUs in total. Other TtsDeployments with this license use 3, and this TtsDeployment requests 3. Pool m gets 1 of 3 replicas. Reduce the replicas or their resources, or request a larger license.",
    );
  });

  it("is never allocated twice by concurrent reconciles", async () => {
    const shares = new LicenseAllocations();
    const names = ["a", "b", "c", "d", "e"];
    const granted = await Promise.all(
      names.map(async (name) => (await judged(shares, name, 2)).granted ?? 0),
    );
    expect(granted.reduce((sum, one) => sum + one, 0)).toBe(4);
  });

  it("is identified by its id only", async () => {
    const shares = new LicenseAllocations();
    await judged(shares, "a", 4);
    expect(await judged(shares, "b", 4, { jti: "another" })).toMatchObject({ granted: 4 });
  });

  it("requeues those that got too little when another one frees capacity, is deleted, or changes its license", async () => {
    const woken: string[][] = [];
    const shares = new LicenseAllocations((keys) => woken.push([...keys]));
    await judged(shares, "a", 3);
    await judged(shares, "b", 3);
    await judged(shares, "c", 1, { jti: "another" });
    expect(woken).toEqual([]);
    await judged(shares, "a", 2);
    expect(woken).toEqual([["ns/b"]]);
    expect(await judged(shares, "b", 3)).toMatchObject({ granted: 2 });
    await judged(shares, "a", 2, { jti: "another" });
    expect(woken).toHaveLength(2);
    shares.forget("ns/c");
    expect(woken).toHaveLength(2);
    expect(await judged(shares, "b", 3)).toMatchObject({ granted: 3, reason: "Valid" });
  });

  it("gives a growing pool only the rest", async () => {
    const shares = new LicenseAllocations();
    await judged(shares, "a", 2);
    await judged(shares, "b", 1);
    const one = { gpus: 1, streams: 1 };
    const limits = { gpus: 4, streams: 256 };
    expect(shares.grow("ns/a", one, limits)).toBe(true);
    expect(shares.grow("ns/b", one, limits)).toBe(false);
    expect(shares.elsewhere("shared", "ns/b")).toEqual({ gpus: 3, streams: 3 });
  });

  it("is not freed if the license disappears while its pods serve", async () => {
    const shares = new LicenseAllocations();
    await judged(shares, "a", 3);
    await decideLicense(observed(named("a", 3)), issuer.keys, shares);
    expect(shares.elsewhere("shared", "ns/b")).toEqual({ gpus: 3, streams: 3 });
  });
});
