import { describe, expect, it } from "vitest";
import { OperatorHouse } from "../../support/operator-house.ts";

const mist = (replicas: number) => [{ name: "mist", kind: "mist", replicas, maxConcurrentStreams: 16 }];

async function putOther(house: OperatorHouse, replicas: number): Promise<void> {
  await house.admin.apply({
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsDeployment",
    metadata: { name: "other", namespace: house.namespace },
    spec: { license: { secretRef: { name: "license" } }, models: mist(replicas) },
  });
}

async function replicasOf(house: OperatorHouse, name: string): Promise<number | undefined> {
  const found = await house.get("Deployment", name);
  return (found?.spec as { replicas?: number } | undefined)?.replicas;
}

async function restart(house: OperatorHouse): Promise<void> {
  await house.stopOperator();
  await house.startOperator();
}

describe("a license for the whole cluster", () => {
  it("is counted over all TtsDeployments that share it, by a new leader too, and given on when it is given back", async () => {
    await using house = await OperatorHouse.open();
    await house.putLicense(await house.issuer.issue({ maxStreams: 32 }));
    await house.putDeployment({}, mist(2));
    await house.until(async () => (await replicasOf(house, "demo-mist")) === 2, "both replicas");
    await putOther(house, 1);
    await house.until(async () => (await replicasOf(house, "other-mist")) === 0, "a pool without a replica");
    expect(await house.condition("LicenseValid", "other")).toMatch(
      /^False TooManyStreams: The license allows 32 streams in all; other TtsDeployments that share it use 32/,
    );
    await restart(house);
    await putOther(house, 2);
    await house.idle();
    expect(await replicasOf(house, "other-mist")).toBe(0);
    expect(await replicasOf(house, "demo-mist")).toBe(2);
    await house.putDeployment({}, mist(1));
    await house.until(async () => (await replicasOf(house, "other-mist")) === 1, "what was given back");
    await house.remove("TtsDeployment", "demo");
    await house.until(async () => (await replicasOf(house, "other-mist")) === 2, "what the deleted one had");
    const isValid = async () => (await house.condition("LicenseValid", "other")).startsWith("True");
    await house.until(isValid, "the condition");
  });

  it("is given on when the answer to a write comes after the word that its TtsDeployment is gone", async () => {
    await using house = await OperatorHouse.open();
    await house.putLicense(await house.issuer.issue({ maxStreams: 32 }));
    await house.putDeployment({}, mist(2));
    await house.until(async () => (await replicasOf(house, "demo-mist")) === 2, "both replicas");
    await putOther(house, 2);
    await house.until(async () => (await replicasOf(house, "other-mist")) === 0, "a pool without a replica");
    house.proxy.rule = ({ method, path }) =>
      method === "PATCH" && path.endsWith("/ttsdeployments/demo/status")
        ? { kind: "late", ms: 1_500 }
        : undefined;
    await house.putDeployment({}, mist(1));
    const isTold = async () => {
      const { metadata, status } = await house.deployment();
      return status?.observedGeneration === metadata.generation;
    };
    await house.until(isTold, "the status");
    await house.remove("TtsDeployment", "demo");
    await house.until(async () => (await replicasOf(house, "other-mist")) === 2, "what the deleted one had");
  });

  it("tells once that it ends soon, whoever leads, and again when another one does", async () => {
    const dayS = 86_400;
    await using house = await OperatorHouse.open();
    const warnings = async () =>
      (await house.admin.list("Event", { namespace: house.namespace }))
        .filter(({ reason }) => reason === "LicenseExpiresSoon")
        .map(({ note }) =>
          /The license (\S+) .*in less than (\w+ \w+)/.exec(String(note))?.slice(1).join(": "),
        );
    const endsIn = (days: number, jti: string) => {
      const exp = Math.floor(Date.now() / 1000) + days * dayS;
      return { jti, nbf: exp - 365 * dayS, exp };
    };
    await house.putLicense(await house.issuer.issue(endsIn(5, "first")));
    await house.putDeployment({}, mist(1));
    await house.until(async () => (await warnings()).length > 0, "the warning");
    expect((await house.deployment()).status?.license).toMatchObject({ id: "first", expiresWithinDays: 7 });
    await restart(house);
    await house.idle();
    expect(await warnings()).toEqual(["first: 7 days"]);
    await house.putLicense(await house.issuer.issue(endsIn(20, "second")));
    await house.until(async () => (await warnings()).length > 1, "the second warning");
    expect((await warnings()).toSorted()).toEqual(["first: 7 days", "second: 30 days"]);
  });
});
