import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiPod, putApiPod } from "../../support/api-pods.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/** What API pods hear of the license's issuer, told to an operator before a real API server. The pods are sockets of the test. */

let house: OperatorHouse;
let api: ApiPod;

beforeEach(async () => {
  house = await OperatorHouse.open();
  api = await ApiPod.start();
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
});

const endpoint = "https://licenses.example.com/v1/status";

async function serving(gracePeriod = "72h"): Promise<void> {
  await house.ready({
    license: { secretRef: { name: "license" }, endpoint, checkInterval: "2h", gracePeriod },
  });
  await putApiPod(house, api.port);
}

const check = async () => (await house.routing()).licenseCheck;

const license = async () => (await house.deployment()).status?.license;

const says = (what: RegExp) =>
  house.until(async () => what.test(await house.condition("LicenseValid")), String(what));

const hoursAgo = (hours: number) => Math.floor(Date.now() / 1000) - hours * 3600;

describe("a license whose issuer is asked", () => {
  it("is asked for by API pods; what one hears all are told, and an operator that starts anew knows it", async () => {
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
    await house.until(async () => (await license())?.lastCheckTime !== undefined, "the answer");
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

  it("that is revoked starts its grace, then holds what is new and nothing that serves; an event tells", async () => {
    await serving("2s");
    api.hear(await house.issuer.answer({ iat: hoursAgo(1) }));
    await house.until(async () => (await check())?.answer !== undefined, "the answer");
    api.hear(await house.issuer.answer({ status: "revoked", reason: "contract ended" }));
    await says(/^False Revoked: The license was revoked by its issuer: contract ended/);
    await house.until(async () => (await license())?.state === "invalid", "the end of the grace");
    await house.putDeployment({
      license: { secretRef: { name: "license" }, endpoint, checkInterval: "2h", gracePeriod: "2s" },
      api: { replicas: 3 },
    });
    await house.until(
      async () => (await house.condition("Ready")).startsWith("False LicenseRevoked"),
      "the hold",
    );
    await house.idle();
    expect((await house.workload("demo-api")).spec?.replicas).toBe(1);
    const events = await house.admin.list("Event", { namespace: house.namespace });
    expect(events.map(({ reason }) => reason)).toContain("Revoked");
    api.hear(await house.issuer.answer({ iat: hoursAgo(-0.01) }));
    await says(/^True/);
    await house.until(async () => (await house.workload("demo-api")).spec?.replicas === 3, "the scale-up");
  });

  it("that cannot be asked is in its grace, by the issuer's last word", async () => {
    await serving();
    api.hear(await house.issuer.answer({ iat: hoursAgo(5) }));
    await says(/^False Unconfirmed: The license's issuer could not be asked since .*serving goes on until/);
    const { state, graceUntil } = (await license()) ?? {};
    expect(state).toBe("grace");
    expect(Math.abs(Date.parse(graceUntil ?? "") / 1000 - (hoursAgo(5) + (2 + 72) * 3600))).toBeLessThan(30);
    expect(await house.condition("Ready")).toMatch(/^True/);
  });

  it("takes no answer that its issuer did not sign, nor one about another license", async () => {
    await serving();
    const stranger = await OperatorHouse.open();
    api.hear(await stranger.issuer.answer({ status: "revoked" }));
    await house.hears(api);
    api.hear(await house.issuer.answer({ jti: "2", status: "revoked" }));
    await house.hears(api);
    expect(await house.condition("LicenseValid")).toMatch(/^True/);
    expect(await check()).toEqual({ since: expect.any(String) });
    await stranger[Symbol.asyncDispose]();
  });
});
