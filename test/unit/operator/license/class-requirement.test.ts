import type { JSONWebKeySet } from "jose";
import { describe, expect, it } from "vitest";
import { noUse } from "../../../../operator/classes/class-use.ts";
import type { ResolvedDeployment } from "../../../../operator/classes/resolve-class.ts";
import type { ClusterCache } from "../../../../operator/cluster/cache.ts";
import { type LicenseScope, needsLicense } from "../../../../operator/facts/settings.ts";
import { withLicenseOf } from "../../../../operator/reconcile/class-of.ts";
import { secretsOf } from "../../../../operator/reconcile/observe.ts";
import { serverSettings, ttsDeployment } from "../../../support/operator/observed.ts";

const key = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
const trusted: JSONWebKeySet = { keys: [key] };
const classes = [
  { metadata: { name: "paid" }, spec: { license: { required: true } } },
  { metadata: { name: "free" }, spec: {} },
];

interface Installation {
  readonly keys?: JSONWebKeySet;
  readonly scope?: LicenseScope;
  readonly isUnreadable?: boolean;
}

/** Returns the settings for a TtsDeployment whose spec this class accepted. */
function settingsFor(
  className: string | undefined,
  { keys = trusted, scope = "Classes", isUnreadable = false }: Installation = {},
  state?: string,
) {
  const view = { isNamespaced: false, knowsAll: () => !isUnreadable, group: () => classes };
  const settings = { ...serverSettings, licenseKeys: keys, licenseScope: scope };
  const status = state === undefined ? undefined : { license: { state } };
  const resolved = {
    deployment: { ...ttsDeployment(), ...(status && { status }) },
    share: className === undefined ? undefined : { className, use: noUse },
  } as unknown as ResolvedDeployment;
  const context = { view: view as unknown as ClusterCache, classes: undefined as never, settings };
  return withLicenseOf(context, resolved).settings;
}

describe("a TtsDeployment needs a license", () => {
  it.each<[string, boolean, string | undefined, Installation, string?]>([
    ["if its class requires one", true, "paid", {}],
    ["not if its class does not require one", false, "free", {}],
    ["not without a class", false, undefined, {}],
    ["in every class if the operator requires one", true, "free", { scope: "All" }],
    ["if its class requires one, although no key is trusted", true, "paid", { keys: { keys: [] } }],
    [
      "not if no key is trusted and no class requires one",
      false,
      "free",
      { keys: { keys: [] }, scope: "All" },
    ],
    ["if it needed one before its class was deleted", true, "deleted", {}, "valid"],
    ["not if it needed none before its class was deleted", false, "deleted", {}, "not_required"],
    ["if it needed one before the classes became unreadable", true, "free", { isUnreadable: true }, "grace"],
  ])("%s", (_what, expected, className, installation, state) => {
    const settings = settingsFor(className, installation, state);
    expect(needsLicense(settings)).toBe(expected);
    const { keys = trusted } = installation;
    expect(settings.licenseKeys).toEqual(expected ? keys : { keys: [] });
    const isRead = secretsOf(ttsDeployment(), settings).some(({ name }) => name === "license");
    expect(isRead).toBe(expected && keys.keys.length > 0);
  });
});
