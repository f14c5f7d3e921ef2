import { describe, expect, it } from "vitest";
import { overridden, parseOverride } from "../../../../operator/desired/pods/pod-template.ts";
import {
  granted,
  plannedDeployment,
  running,
  serverSettings,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const template = {
  metadata: { labels: { ours: "yes" } },
  spec: {
    containers: [
      {
        name: "mist",
        env: [
          { name: "A", value: "1" },
          { name: "SVC_TTS_MAX_CONCURRENT_STREAMS", value: "16" },
          { name: "SVC_TTS_LICENSE_KEYS_FILE", value: "/etc/svc-tts/license-keys/jwks.json" },
          { name: "POD_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
        ],
        volumeMounts: [{ name: "license-keys", mountPath: "/etc/svc-tts/license-keys" }],
      },
    ],
    volumes: [{ name: "license-keys", configMap: { name: "demo-routing" } }],
  },
};
type Override = Parameters<typeof overridden>[1];
const container = (more: object): Override => ({ spec: { containers: [{ name: "mist", ...more }] } });

describe("a rejected override has a message with the field:", () => {
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
      /spec\.\$setElementOrder\/containers is not supported/,
    ],
    [
      "retained keys that forget one",
      { spec: { $retainKeys: ["hostname"], nodeName: "x" } },
      /\$retainKeys must also list nodeName/,
    ],
    [
      "a device",
      container({ resources: { limits: { "nvidia.com/gpu": 8 } } }),
      /containers\[mist\]\.resources requests nvidia\.com\/gpu; .*accelerator/,
    ],
    [
      "a device of a sidecar",
      { spec: { initContainers: [{ name: "x", resources: { requests: { "a/b": 1 } } }] } },
      /requests a\/b/,
    ],
    ["a claim", { spec: { resourceClaims: [{ name: "x" }] } }, /accelerator\.claimTemplateName/],
    ["the end of our container", container({ $patch: "delete" }), /must keep the container mist/],
    [
      "other containers in place of ours",
      { spec: { containers: [{ $patch: "replace" }, { name: "x" }] } },
      /must keep the container mist/,
    ],
    [
      "more streams than are licensed",
      container({ env: [{ name: "SVC_TTS_MAX_CONCURRENT_STREAMS", value: "999" }] }),
      /containers\[mist\]\.env must leave SVC_TTS_MAX_CONCURRENT_STREAMS as the operator sets it/,
    ],
    [
      "the same by leaving the limit out",
      container({ env: [{ name: "SVC_TTS_MAX_CONCURRENT_STREAMS", $patch: "delete" }] }),
      /must leave SVC_TTS_MAX_CONCURRENT_STREAMS/,
    ],
    [
      "other variables in place of ours",
      container({ env: [{ $patch: "replace" }, { name: "X", value: "1" }] }),
      /must leave SVC_TTS_MAX_CONCURRENT_STREAMS/,
    ],
    [
      "other keys for licenses, by their variable",
      container({ env: [{ name: "SVC_TTS_LICENSE_KEYS_FILE", value: "/tmp/keys" }] }),
      /must leave SVC_TTS_LICENSE_KEYS_FILE/,
    ],
    [
      "the routing table of another namespace, which could say that no license is required",
      container({ env: [{ name: "POD_NAMESPACE", value: "mine", valueFrom: null }] }),
      /must leave POD_NAMESPACE/,
    ],
    [
      "other keys for licenses, by their volume",
      { spec: { volumes: [{ name: "license-keys", configMap: { name: "mine" } }] } },
      /must leave volume license-keys/,
    ],
    [
      "other keys for licenses, by a mount within theirs",
      container({ volumeMounts: [{ mountPath: "/etc/svc-tts/license-keys/jwks.json", name: "x" }] }),
      /must leave volume license-keys/,
    ],
  ])("%s", (_what, override, message) => {
    expect(() => overridden(template, override)).toThrow(message);
  });

  it("invalid JSON", () => {
    expect(() => parseOverride("{")).toThrow(/not valid JSON/);
  });
});

describe("an override", () => {
  it("does not change the template if it is absent", () => {
    expect(overridden(template, undefined)).toBe(template);
  });

  it("may change unlimited settings", () => {
    const merged = overridden(template, container({ env: [{ name: "A", value: "2" }] }));
    expect(merged.spec?.containers[0]?.env?.[0]).toEqual({ name: "A", value: "2" });
  });

  it("keeps the model as the container of `kubectl logs`", () => {
    const { metadata, spec } = overridden(template, { spec: { containers: [{ name: "sidecar" }] } });
    expect(spec?.containers.map(({ name }) => name)).toEqual(["sidecar", "mist"]);
    expect(metadata?.annotations).toEqual({ "kubectl.kubernetes.io/default-container": "mist" });
  });

  it("that becomes invalid leaves the pods on their pinned template", () => {
    const { server } = serverSettings;
    const pool = ttsModelPool({ podTemplate: JSON.stringify({ spec: { hostname: "h" } }) });
    const before = plannedDeployment(pool, undefined, granted, server);
    const live = { ...running(1), metadata: { ...running(1).metadata, ...before?.metadata } };
    expect(before?.spec.template.spec?.hostname).toBe("h");
    expect(plannedDeployment(pool, live, granted, server)?.spec.template).toEqual(before?.spec.template);
    const spoilt = ttsModelPool({ podTemplate: "{" });
    expect(() => plannedDeployment(spoilt, live, granted, server)).toThrow(/not valid JSON/);
  });
});
