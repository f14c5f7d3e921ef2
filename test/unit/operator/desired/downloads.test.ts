import { Value } from "typebox/value";
import { describe, expect, it } from "vitest";
import { TtsClassSpecSchema } from "../../../../crds/tts-class.ts";
import { applyClass } from "../../../../operator/classes/apply-class.ts";
import { noUse } from "../../../../operator/classes/class-use.ts";
import { cacheViolations } from "../../../../operator/classes/limits.ts";
import { fetchJob } from "../../../../operator/desired/fetch-job.ts";
import { modelPool } from "../../../../operator/desired/model-pool.ts";
import { cacheNetworkPolicy, networkPolicies } from "../../../../operator/desired/network-policy.ts";
import type { TtsClass, TtsModelCache } from "../../../../operator/facts/observed.ts";
import {
  granted,
  plannedDeployment,
  serverSettings,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const downloads = {
  proxy: "http://proxy.example:3128",
  noProxy: [".svc", "10.0.0.1"],
  caBundle: { configMapName: "authorities", key: "bundle.pem" },
  registries: { pypi: "https://pypi.example/simple", npm: "https://npm.example:8443" },
};
const cache = { emptyDir: {}, sources: [{ url: "https://files.example/a.onnx" }] };
const caFile = "/etc/svc-tts/downloads-ca/ca.crt";
const variables = {
  HTTP_PROXY: downloads.proxy,
  HTTPS_PROXY: downloads.proxy,
  NODE_USE_ENV_PROXY: "1",
  NO_PROXY: ".svc,10.0.0.1",
  NODE_EXTRA_CA_CERTS: caFile,
  PIP_CERT: caFile,
  PIP_INDEX_URL: downloads.registries.pypi,
  npm_config_registry: downloads.registries.npm,
};
const volume = {
  name: "downloads-ca",
  configMap: { name: "authorities", items: [{ key: "bundle.pem", path: "ca.crt" }] },
};
const mount = { name: "downloads-ca", mountPath: "/etc/svc-tts/downloads-ca", readOnly: true };

function cacheWith(spec: object): TtsModelCache {
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsModelCache",
    metadata: { name: "voices", namespace: "ns", uid: "uid", generation: 1 },
    spec: { preset: "kokoro-82m", storage: {}, ...spec } as TtsModelCache["spec"],
  };
}

const valuesOf = (env: { name: string; value?: string }[] = []) =>
  Object.fromEntries(env.map(({ name, value }) => [name, value]));
const portsOf = (policy: object | undefined) =>
  [...JSON.stringify(policy).matchAll(/"port":(\d+)/g)].map(([, port]) => Number(port));

describe("downloads of a TtsDeployment", () => {
  const podOf = (spec: { [field: string]: unknown }) =>
    plannedDeployment(ttsModelPool(spec), undefined, granted, serverSettings.server)?.spec.template.spec;

  it("apply to the containers that fetch files, and not to the model", () => {
    const pod = podOf({ cache, downloads });
    expect(valuesOf(pod?.initContainers?.[0]?.env)).toEqual(variables);
    expect(pod?.initContainers?.[0]?.volumeMounts).toContainEqual(mount);
    expect(pod?.volumes).toContainEqual(volume);
    expect(valuesOf(pod?.containers[0]?.env)).not.toHaveProperty("HTTP_PROXY");
    expect(pod?.containers[0]?.volumeMounts).not.toContainEqual(mount);
  });

  it("change nothing in a pod if they are absent", () => {
    expect(podOf({ cache })?.initContainers?.[0]).not.toHaveProperty("env");
  });

  it("are part of the pools whose pods fetch files, so other pods are not replaced", () => {
    const models = [
      { name: "fetching", kind: "mist", cache },
      { name: "other", kind: "mist" },
    ];
    const deployment = ttsDeployment({ downloads }, models);
    const found = deployment.spec.models.map((model) => modelPool(deployment, model, false).spec.downloads);
    expect(found).toEqual([downloads, undefined]);
  });

  it("open the ports of proxy and registries in the NetworkPolicy of the model pods", () => {
    const policies = (model: object) =>
      networkPolicies(
        ttsDeployment({ downloads, networkPolicy: { enabled: true } }, [
          { name: "mist", kind: "mist", ...model },
        ]),
      );
    expect(portsOf(policies({ cache })[1])).toEqual(expect.arrayContaining([443, 3128, 8443]));
    expect(portsOf(policies({})[1])).not.toContain(3128);
  });
});

describe("downloads of a TtsModelCache", () => {
  const attempt = { attempt: 0, claimUid: "claim", beside: undefined };
  const podOf = (spec: object, defaults = {}) =>
    fetchJob(cacheWith(spec), attempt, serverSettings.server, defaults).spec.template.spec;

  it.each<[string, object, { downloads?: typeof downloads }]>([
    ["the spec", { downloads }, {}],
    ["the class", {}, { downloads }],
  ])("apply to the Job, from %s", (_what, spec, defaults) => {
    const pod = podOf(spec, defaults);
    expect(valuesOf(pod?.containers[0]?.env)).toEqual({ HOME: "/tmp", ...variables });
    expect(pod?.containers[0]?.volumeMounts).toContainEqual(mount);
    expect(pod?.volumes).toContainEqual(volume);
    const networkPolicy = { enabled: true };
    const policy = cacheNetworkPolicy(cacheWith({ networkPolicy, ...spec }), defaults);
    expect(portsOf(policy)).toEqual(expect.arrayContaining([443, 3128, 8443]));
  });

  it("of the spec replace those of the class", () => {
    const pod = podOf({ downloads: { noProxy: [] } }, { downloads });
    expect(valuesOf(pod?.containers[0]?.env)).toEqual({ HOME: "/tmp" });
  });
});

describe("a class", () => {
  const spec = (limits: object) =>
    Value.Default(TtsClassSpecSchema, { limits, defaults: { downloads } }) as TtsClass["spec"];
  const context = { namespace: "ns", elsewhere: noUse };

  it("has default downloads, which a TtsDeployment replaces", () => {
    const apply = (own: { [field: string]: unknown }) =>
      applyClass(ttsDeployment(own).spec, spec({}), context).spec.downloads;
    expect(apply({})).toEqual(downloads);
    expect(apply({ downloads: {} })).toEqual({});
  });

  it("with allowedModelSources also limits the proxy and the registries", () => {
    const limits = { allowedModelSources: ["https://files.example", "preset:*"] };
    const own = { downloads: { ...downloads, registries: { pypi: "https://files.example/simple" } } };
    const { violations } = applyClass(ttsDeployment(own).spec, spec(limits), context);
    expect(violations.map(({ field }) => field)).toEqual(["spec.downloads.proxy"]);
    const ofCache = cacheViolations(cacheWith({ ...own, preset: undefined }), spec(limits).limits);
    expect(ofCache.map(({ field }) => field)).toEqual(["spec.downloads.proxy"]);
  });
});
