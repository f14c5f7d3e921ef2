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

async function evaluate(shares: LicenseAllocations, name: string, replicas: number, claims: object = {}) {
  const token = await issuer.issue({ ...dates, maxGpus: 4, jti: "shared", ...claims });
  const license = await readLicense({ token, keys: issuer.keys });
  const result = await decideLicense(observed(named(name, replicas), { license }), issuer.keys, shares);
  return { granted: result.pools.get("m")?.replicas, reason: result.reason, message: result.message };
}

describe("a license that several TtsDeployments share", () => {
  it("applies its limits to all of them together", async () => {
    const shares = new LicenseAllocations();
    expect(await evaluate(shares, "a", 3)).toMatchObject({ granted: 3, reason: "Valid" });
    const second = await evaluate(shares, "b", 3);
    expect(second).toMatchObject({ granted: 1, reason: "TooManyGpus" });
    expect(second.message).toBe(
      "The license allows 4 GPUs in total. Other TtsDeployments with this license use 3, and this TtsDeployment requests 3. Pool m gets 1 of 3 replicas. Reduce the replicas or their resources, or request a larger license.",
    );
  });

  it("is not over-allocated by concurrent reconciles", async () => {
    const shares = new LicenseAllocations();
    const names = ["a", "b", "c", "d", "e"];
    const granted = await Promise.all(
      names.map(async (name) => (await evaluate(shares, name, 2)).granted ?? 0),
    );
    expect(granted.reduce((sum, one) => sum + one, 0)).toBe(4);
  });

  it("is identified by its id", async () => {
    const shares = new LicenseAllocations();
    await evaluate(shares, "a", 4);
    expect(await evaluate(shares, "b", 4, { jti: "another" })).toMatchObject({ granted: 4 });
  });

  it("requeues TtsDeployments with too few replicas when another one frees capacity or changes its license", async () => {
    const requeued: string[][] = [];
    const shares = new LicenseAllocations((keys) => requeued.push([...keys]));
    await evaluate(shares, "a", 3);
    await evaluate(shares, "b", 3);
    await evaluate(shares, "c", 1, { jti: "another" });
    expect(requeued).toEqual([]);
    await evaluate(shares, "a", 2);
    expect(requeued).toEqual([["ns/b"]]);
    expect(await evaluate(shares, "b", 3)).toMatchObject({ granted: 2 });
    await evaluate(shares, "a", 2, { jti: "another" });
    expect(requeued).toHaveLength(2);
    shares.forget("ns/c");
    expect(requeued).toHaveLength(2);
    expect(await evaluate(shares, "b", 3)).toMatchObject({ granted: 3, reason: "Valid" });
  });

  it("allows a pool to grow only within the remaining limits", async () => {
    const shares = new LicenseAllocations();
    await evaluate(shares, "a", 2);
    await evaluate(shares, "b", 1);
    const one = { gpus: 1, streams: 1 };
    const limits = { gpus: 4, streams: 256 };
    expect(shares.grow("ns/a", one, limits)).toBe(true);
    expect(shares.grow("ns/b", one, limits)).toBe(false);
    expect(shares.elsewhere("shared", "ns/b")).toEqual({ gpus: 3, streams: 3 });
  });

  it("stays allocated if the license is deleted while its pods run", async () => {
    const shares = new LicenseAllocations();
    await evaluate(shares, "a", 3);
    await decideLicense(observed(named("a", 3)), issuer.keys, shares);
    expect(shares.elsewhere("shared", "ns/b")).toEqual({ gpus: 3, streams: 3 });
  });
});
