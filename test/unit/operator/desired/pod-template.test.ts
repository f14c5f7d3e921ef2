import { describe, expect, it } from "vitest";
import { overridden, parseOverride } from "../../../../operator/desired/pod-template.ts";
import { plannedDeployment, running, ttsModelPool } from "../../../support/observed.ts";

const template = {
  metadata: { labels: { ours: "yes" } },
  spec: { containers: [{ name: "mist", env: [{ name: "A", value: "1" }] }] },
};
type Override = Parameters<typeof overridden>[1];
const container = (more: object): Override => ({ spec: { containers: [{ name: "mist", ...more }] } });

describe("an override that is refused names its place:", () => {
  it.each<[string, Override, RegExp]>([
    [
      "a container without a name",
      { spec: { containers: [{ image: "x" }] } },
      /podTemplate\.spec\.containers\[0\] has no name/,
    ],
    [
      "a variable without a name",
      container({ env: [{ value: "x" }] }),
      /containers\[mist\]\.env\[0\] has no name/,
    ],
    ["text for a container", { spec: { containers: ["x"] } }, /containers\[0\] must be an object/],
    [
      "an unknown way to patch",
      container({ $patch: "merge" }),
      /containers\[0\]\.\$patch is "merge"; it must be replace or delete/,
    ],
    [
      "an unknown directive",
      { spec: { "$setElementOrder/containers": [] } },
      /spec\.\$setElementOrder\/containers is not understood/,
    ],
    [
      "retained keys that forget one",
      { spec: { $retainKeys: ["hostname"], nodeName: "x" } },
      /\$retainKeys must name nodeName too/,
    ],
    [
      "a device",
      container({ resources: { limits: { "nvidia.com/gpu": 8 } } }),
      /containers\[mist\]\.resources asks for nvidia\.com\/gpu: .*accelerator/,
    ],
    [
      "a device of a sidecar",
      { spec: { initContainers: [{ name: "x", resources: { requests: { "a/b": 1 } } }] } },
      /asks for a\/b/,
    ],
    ["a claim", { spec: { resourceClaims: [{ name: "x" }] } }, /accelerator\.claimTemplateName/],
    ["the end of our container", container({ $patch: "delete" }), /must keep the container mist/],
    [
      "other containers in place of ours",
      { spec: { containers: [{ $patch: "replace" }, { name: "x" }] } },
      /must keep the container mist/,
    ],
  ])("%s", (_what, override, message) => {
    expect(() => overridden(template, override)).toThrow(message);
  });

  it("JSON that somebody spoilt", () => {
    expect(() => parseOverride("{")).toThrow(/no JSON/);
  });
});

describe("an override", () => {
  it("leaves a template as it is where there is none", () => {
    expect(overridden(template, undefined)).toBe(template);
  });

  it("keeps `kubectl logs` on our container, whatever comes before it", () => {
    const { metadata, spec } = overridden(template, { spec: { containers: [{ name: "sidecar" }] } });
    expect(spec?.containers.map(({ name }) => name)).toEqual(["sidecar", "mist"]);
    expect(metadata?.annotations).toEqual({ "kubectl.kubernetes.io/default-container": "mist" });
  });

  it("that is refused later leaves pods that run on what they were pinned to", () => {
    const open = { held: false, replicas: 1 };
    const server = { image: "server:1", pullPolicy: undefined };
    const pool = ttsModelPool({ podTemplate: JSON.stringify({ spec: { hostname: "h" } }) });
    const before = plannedDeployment(pool, undefined, open, server);
    const live = { ...running(1), metadata: { ...running(1).metadata, ...before?.metadata } };
    expect(before?.spec.template.spec?.hostname).toBe("h");
    expect(plannedDeployment(pool, live, open, server)?.spec.template).toEqual(before?.spec.template);
    const spoilt = ttsModelPool({ podTemplate: "{" });
    expect(() => plannedDeployment(spoilt, live, open, server)).toThrow(/no JSON/);
  });
});
