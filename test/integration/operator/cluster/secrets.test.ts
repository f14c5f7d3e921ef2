import { describe, expect, it } from "vitest";
import { type OperatorHouse, useOperatorHouse } from "../../../support/operator/operator-house.ts";

let house: OperatorHouse;

useOperatorHouse((opened) => {
  house = opened;
});

/** Returns the names of the Secrets that were read since the last call. */
function readsOfSecrets(): string[] {
  const reads = house.proxy.requests.splice(0).filter(({ method, watch }) => method === "GET" && !watch);
  return reads.map(({ path }) => /\/secrets\/?(.*)$/.exec(path)?.[1]).filter((name) => name !== undefined);
}

const putAnother = (name: string) => house.putDeployment({}, undefined, name);

describe("Secrets", () => {
  it("are not read again by further reconciles", async () => {
    await house.ready();
    await house.touch("0");
    await house.idle();
    readsOfSecrets();
    const reconciles = () => house.lines.filter((line) => line.startsWith("a reconcile has ended ")).length;
    const before = reconciles();
    for (const value of ["1", "2", "3"]) {
      await house.touch(value);
      await house.idle();
    }
    expect(reconciles()).toBeGreaterThanOrEqual(before + 3);
    expect(readsOfSecrets()).toEqual([]);
  });

  it("are read once by an operator that starts, and one watch covers all Secrets that the operator creates", async () => {
    await house.ready();
    const names = ["second", "third", "fourth"];
    for (const name of names) await putAnother(name);
    for (const name of names) await house.untilThere("Secret", `${name}-token`);
    await house.idle();
    await house.stopOperator();
    house.proxy.requests.splice(0);
    await house.startOperator();
    await house.idle();
    const watches = house.proxy.requests.filter(({ path, watch }) => watch && path.endsWith("/secrets"));
    const selected = watches.map(({ query }) => query.get("fieldSelector") ?? query.get("labelSelector"));
    expect(new Set(selected)).toEqual(
      new Set(["metadata.name=license", "app.kubernetes.io/managed-by=tts-operator"]),
    );
    const reads = readsOfSecrets();
    for (const name of ["demo", ...names])
      expect(reads.filter((read) => read === `${name}-token`).length).toBeLessThanOrEqual(2);
    // The first reconciles read the license until the watch has reported its version.
    expect(reads.filter((read) => read === "license").length).toBeLessThan(12);
    expect(reads).not.toContain("");
  });

  it("that several TtsDeployments share are evaluated again for each TtsDeployment when they change", async () => {
    await house.ready();
    await putAnother("second");
    const both = async (expected: RegExp) => {
      for (const name of ["demo", "second"]) await house.untilCondition("LicenseValid", expected, name);
    };
    await both(/^True Valid/);
    await house.putLicense("no license");
    await both(/^False Invalid/);
    await house.remove("Secret", "license");
    await both(/^False Missing/);
    await house.putLicense(await house.issuer.issue());
    await both(/^True Valid/);
  });

  it("of the operator are repaired after a change, also if their watch has to start again", async () => {
    await house.ready();
    await house.idle();
    const { data, ...token } = await house.mustGet("Secret", "demo-token");
    const isRepaired = async () =>
      JSON.stringify((await house.mustGet("Secret", "demo-token")).data) === JSON.stringify(data);
    await house.admin.replace({ ...token, data: { token: "c3RvbGVu" } });
    await house.until(isRepaired, "the repair");
    let rejected = 0;
    house.proxy.rule = ({ path, watch }) =>
      watch && path.endsWith("/secrets") && rejected++ < 4 ? { kind: "answer", status: 410 } : undefined;
    house.proxy.cutWatches();
    const latest = await house.mustGet("Secret", "demo-token");
    await house.admin.replace({ ...latest, data: { token: "c3RvbGVu" } });
    await house.until(isRepaired, "the repair after the gap");
    expect(rejected).toBeGreaterThan(3);
  });
});
