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

describe("a podTemplate is refused, and the message names the field, if it has", () => {
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
    ["text instead of a container", { spec: { containers: ["x"] } }, /containers\[0\] must be an object/],
    [
      "an unknown $patch",
      container({ $patch: "merge" }),
      /containers\[0\]\.\$patch is "merge"; it must be replace or delete/,
    ],
    [
      "an unknown directive",
      { spec: { "$setElementOrder/containers": [] } },
      /spec\.\$setElementOrder\/containers is not supported/,
    ],
    [
      "$retainKeys without one of its keys",
      { spec: { $retainKeys: ["hostname"], nodeName: "x" } },
      /\$retainKeys must also list nodeName/,
    ],
    [
      "a device in a container",
      container({ resources: { limits: { "nvidia.com/gpu": 8 } } }),
      /containers\[mist\]\.resources requests nvidia\.com\/gpu; .*accelerator/,
    ],
    [
      "a device in an init container",
      { spec: { initContainers: [{ name: "x", resources: { requests: { "a/b": 1 } } }] } },
      /requests a\/b/,
    ],
    ["a resource claim", { spec: { resourceClaims: [{ name: "x" }] } }, /accelerator\.claimTemplateName/],
    [
      "a deletion of the container of the operator",
      container({ $patch: "delete" }),
      /must keep the container mist/,
    ],
    [
      "a replacement of all containers",
      { spec: { containers: [{ $patch: "replace" }, { name: "x" }] } },
      /must keep the container mist/,
    ],
    [
      "another value of the stream limit",
      container({ env: [{ name: "SVC_TTS_MAX_CONCURRENT_STREAMS", value: "999" }] }),
      /containers\[mist\]\.env must not change SVC_TTS_MAX_CONCURRENT_STREAMS, which the operator sets/,
    ],
    [
      "a deletion of the stream limit",
      container({ env: [{ name: "SVC_TTS_MAX_CONCURRENT_STREAMS", $patch: "delete" }] }),
      /must not change SVC_TTS_MAX_CONCURRENT_STREAMS/,
    ],
    [
      "a replacement of all variables",
      container({ env: [{ $patch: "replace" }, { name: "X", value: "1" }] }),
      /must not change SVC_TTS_MAX_CONCURRENT_STREAMS/,
    ],
    [
      "another path of the license keys",
      container({ env: [{ name: "SVC_TTS_LICENSE_KEYS_FILE", value: "/tmp/keys" }] }),
      /must not change SVC_TTS_LICENSE_KEYS_FILE/,
    ],
    [
      "another namespace, whose routing table could state that no license is required",
      container({ env: [{ name: "POD_NAMESPACE", value: "mine", valueFrom: null }] }),
      /must not change POD_NAMESPACE/,
    ],
    [
      "another volume for the license keys",
      { spec: { volumes: [{ name: "license-keys", configMap: { name: "mine" } }] } },
      /must not change the volume license-keys/,
    ],
    [
      "a mount within the folder of the license keys",
      container({ volumeMounts: [{ mountPath: "/etc/svc-tts/license-keys/jwks.json", name: "x" }] }),
      /must not change the volume license-keys/,
    ],
  ])("%s", (_what, override, message) => {
    expect(() => overridden(template, override)).toThrow(message);
  });

  it("invalid JSON", () => {
    expect(() => parseOverride("{")).toThrow(/not valid JSON/);
  });
});

describe("a podTemplate", () => {
  it("leaves the template unchanged if it is absent", () => {
    expect(overridden(template, undefined)).toBe(template);
  });

  it("may change other variables", () => {
    const merged = overridden(template, container({ env: [{ name: "A", value: "2" }] }));
    expect(merged.spec?.containers[0]?.env?.[0]).toEqual({ name: "A", value: "2" });
  });

  it("keeps the model container as the default container of `kubectl logs`", () => {
    const { metadata, spec } = overridden(template, { spec: { containers: [{ name: "sidecar" }] } });
    expect(spec?.containers.map(({ name }) => name)).toEqual(["sidecar", "mist"]);
    expect(metadata?.annotations).toEqual({ "kubectl.kubernetes.io/default-container": "mist" });
  });

  it("is applied, and causes an error if it becomes invalid", () => {
    const { server } = serverSettings;
    const pool = ttsModelPool({ podTemplate: JSON.stringify({ spec: { hostname: "h" } }) });
    const before = plannedDeployment(pool, undefined, granted, server);
    const live = { ...running(1), metadata: { ...running(1).metadata, ...before?.metadata } };
    expect(before?.spec.template.spec?.hostname).toBe("h");
    expect(plannedDeployment(pool, live, granted, server)?.spec.template).toEqual(before?.spec.template);
    const invalid = ttsModelPool({ podTemplate: "{" });
    expect(() => plannedDeployment(invalid, live, granted, server)).toThrow(/not valid JSON/);
  });
});
