import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { clusterRequest } from "../../support/cluster/cluster-request.ts";
import { kubectlOrThrow } from "../../support/cluster/kubectl.ts";

const address = inject("controlPlane");
const namespace = "crds";

beforeAll(async () => {
  await kubectlOrThrow(address, ["create", "namespace", namespace]);
  await kubectlOrThrow(address, ["create", "-f", "-"], JSON.stringify(deployment({}, {}, "first")));
});

type Json = { [name: string]: unknown };

function deployment(spec: Json = {}, model: Json = {}, name = "demo"): Json {
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsDeployment",
    metadata: { name, namespace },
    spec: {
      license: { secretRef: { name: "license" } },
      models: [{ name: "mist", kind: "mist", ...model }],
      ...spec,
    },
  };
}

/** Sends the request of `kubectl create --dry-run=server`, which rejects unknown fields. */
const dryRun = (body: Json) => {
  const path = `/apis/tts.svc.dev/v1alpha1/namespaces/${namespace}/ttsdeployments?dryRun=All&fieldValidation=Strict`;
  return clusterRequest(address, { method: "POST", path, body });
};

describe("the CRDs", () => {
  it("are unchanged after a second client-side apply", async () => {
    const crds = join(import.meta.dirname, "../../../crds");
    await kubectlOrThrow(address, ["apply", "-f", crds]);
    const again = await kubectlOrThrow(address, ["apply", "-f", crds]);
    expect(again).toMatch(
      /ttsclasses.tts.svc.dev unchanged[\s\S]*ttsdeployments.tts.svc.dev unchanged[\s\S]*ttsmodelcaches.tts.svc.dev unchanged[\s\S]*ttsmodelpools.tts.svc.dev unchanged/,
    );
  });

  it("are structural according to the API server", async () => {
    const crds = JSON.parse(await kubectlOrThrow(address, ["get", "crd", "-o", "json"]));
    const ours = crds.items.filter((crd: { spec: { group: string } }) => crd.spec.group === "tts.svc.dev");
    expect(ours).toHaveLength(4);
    for (const crd of ours) {
      const types = crd.status.conditions.filter(({ status }: { status: string }) => status === "True");
      expect(types.map(({ type }: { type: string }) => type).sort()).toEqual([
        "Established",
        "NamesAccepted",
      ]);
    }
  });

  it("set every default of a deployment with only the required fields", async () => {
    const { body, warning } = await dryRun(deployment({}, { accelerator: {} }));
    expect(warning).toBeUndefined();
    expect((body as Json).spec).toEqual({
      suspend: false,
      profile: "self-hosted",
      internalToken: { rotateEveryDays: 30 },
      api: {
        replicas: 1,
        resources: { requests: { cpu: "100m", memory: "128Mi" } },
        drain: { maxStreamSeconds: 300, endpointDelaySeconds: 5 },
        service: { type: "ClusterIP", annotations: {} },
      },
      license: {
        secretRef: { name: "license", key: "license.jwt" },
        gracePeriod: "72h",
        checkInterval: "24h",
      },
      models: [
        {
          name: "mist",
          kind: "mist",
          accelerator: { resourceName: "nvidia.com/gpu", count: 1, nodeSelector: {}, tolerations: [] },
          resources: { requests: { cpu: "100m", memory: "512Mi" } },
          maxConcurrentStreams: 16,
          rollout: { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 900, whenFull: "Trade" },
          drain: { maxStreamSeconds: 300, endpointDelaySeconds: 5 },
          probes: {
            startup: { initialDelaySeconds: 0, periodSeconds: 2, failureThreshold: 300, timeoutSeconds: 5 },
            readiness: { initialDelaySeconds: 0, periodSeconds: 3, failureThreshold: 2, timeoutSeconds: 3 },
            liveness: { initialDelaySeconds: 0, periodSeconds: 10, failureThreshold: 3, timeoutSeconds: 5 },
          },
        },
      ],
      availability: { podDisruptionBudget: { enabled: true, maxUnavailable: 1 } },
      networkPolicy: {
        enabled: false,
        apiServer: { cidrs: [], ports: [443, 6443] },
        licenseEgress: [],
        metricsFrom: [],
      },
    });
  });

  it.each([
    ["MIG slices", {}, { accelerator: { mig: "1g.10gb.me", count: 2 } }],
    ["a compute instance of a MIG slice", {}, { accelerator: { mig: "1c.3g.40gb" } }],
    ["a resource claim template", {}, { accelerator: { claimTemplateName: "gpus", count: 2 } }],
    [
      "a disruption budget in percent",
      { availability: { podDisruptionBudget: { maxUnavailable: "1%" } } },
      {},
    ],
    [
      "IPv4 and IPv6 networks",
      { networkPolicy: { licenseEgress: [{ cidr: "fd00::/8" }, { cidr: "10.0.0.0/8" }] } },
      {},
    ],
    [
      "any field of a pod in podTemplate",
      {},
      { podTemplate: { spec: { containers: [{ name: "x", $patch: "delete" }], y: { z: 1 } } } },
    ],
    ["a model in an image", {}, { cache: { imageVolume: { reference: "registry/model:1" } } }],
    [
      "a cache with sources of four kinds",
      {},
      {
        cache: {
          persistentVolumeClaim: { claimName: "c" },
          sources: [
            { url: "https://host/a.bin", sha256: "0".repeat(64), secretRef: { name: "s" } },
            { url: "s3://bucket/key", endpoint: "http://minio:9000" },
            { url: "hf://o/r@main" },
            { url: "oci://registry/model:1", path: "arcana" },
          ],
        },
      },
    ],
    ["zero replicas", {}, { replicas: 0 }],
    ["maxSurge in percent", {}, { rollout: { maxSurge: "25%", maxUnavailable: "0%" } }],
    ["maxSurge 0 if maxUnavailable is 1", {}, { rollout: { maxSurge: 0, maxUnavailable: 1 } }],
    ["a drain of one hour", {}, { drain: { maxStreamSeconds: 3600 } }],
    [
      "an environment variable from a Secret",
      {},
      { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] },
    ],
    ["a toleration of all taints", {}, { accelerator: { tolerations: [{ operator: "Exists" }] } }],
    [
      "quantities as integers and as strings",
      {},
      { resources: { requests: { cpu: 1 }, limits: { cpu: "1000m" } } },
    ],
    [
      "huge pages and ephemeral storage",
      {},
      { resources: { limits: { "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi", memory: "1Gi" } } },
    ],
    [
      "a node selector with a dotted label and an empty value",
      {},
      { accelerator: { nodeSelector: { "nvidia.com/gpu.product": "H200", flag: "" } } },
    ],
    [
      "annotations of the Service",
      { api: { service: { annotations: { "example.com/lb_Type": "x, y" } } } },
      {},
    ],
    ["a deployment without a license", { license: undefined }, {}],
    ["a grace period of 90 days", { license: { secretRef: { name: "l" }, gracePeriod: "2160h" } }, {}],
  ])("accept %s", async (_what, spec, model) => {
    expect(await dryRun(deployment(spec, model))).toMatchObject({ status: 201, warning: undefined });
  });

  // CEL rules are tested in rules.test.ts.
  it.each<[string, Json, Json, RegExp]>([
    ["an empty list of models", { models: [] }, {}, /spec.models.*at least 1 item/],
    [
      "two pools with the same name",
      {
        models: [
          { name: "a", kind: "mist" },
          { name: "a", kind: "arcana" },
        ],
      },
      {},
      /spec\.models\[1\]: Duplicate value.*"a"/,
    ],
    [
      "an unknown model kind",
      {},
      { kind: "opera" },
      /spec\.models\[0\]\.kind: Unsupported value: "opera".*"mist", "arcana"/,
    ],
    [
      "a pool name of 21 characters",
      {},
      { name: "a".repeat(21) },
      /models\[0\]\.name.*may not be (longer|more) than 20/,
    ],
    ["a license without a Secret", { license: {} }, {}, /spec\.license\.secretRef: Required value/],
    [
      "a grace period in days",
      { license: { secretRef: { name: "l" }, gracePeriod: "3d" } },
      {},
      /gracePeriod.*should match/,
    ],
    [
      "maxSurge 0 with maxUnavailable 0",
      {},
      { rollout: { maxSurge: 0, maxUnavailable: 0 } },
      /spec\.models\[0\]\.rollout\.maxSurge: Invalid value.*must not both be zero/,
    ],
    ["maxSurge above 100 %", {}, { rollout: { maxSurge: "101%" } }, /maxSurge.*should match/],
    [
      "a drain above one hour",
      {},
      { drain: { maxStreamSeconds: 3601 } },
      /drain\.maxStreamSeconds.*less than or equal to 3600/,
    ],
    [
      "zero replicas of the API",
      { api: { replicas: 0 } },
      {},
      /spec\.api\.replicas.*greater than or equal to 1/,
    ],
    [
      "a resource request above its limit",
      {},
      { resources: { requests: { cpu: "2" }, limits: { cpu: "500m" } } },
      /resources\.requests must not exceed/,
    ],
    [
      "an invalid quantity",
      {},
      { resources: { limits: { cpu: "much" } } },
      /resources\.limits\.cpu.*should match/,
    ],
    [
      "a device name without a vendor",
      {},
      { accelerator: { resourceName: "gpu" } },
      /accelerator\.resourceName.*should match/,
    ],
    ["zero devices", {}, { accelerator: { count: 0 } }, /accelerator\.count.*greater than or equal to 1/],
    [
      "an environment variable that the operator sets",
      {},
      { env: [{ name: "SVC_TTS_PORT", value: "1" }] },
      /env must not set a variable that the operator sets/,
    ],
    [
      "a duplicate environment variable",
      {},
      {
        env: [
          { name: "A", value: "1" },
          { name: "A", value: "2" },
        ],
      },
      /env\[1\]: Duplicate value/,
    ],
    [
      "a negative quantity",
      {},
      { resources: { limits: { cpu: "-1" } } },
      /resources\.limits\.cpu.*should match/,
    ],
    [
      "a negative integer quantity",
      {},
      { resources: { limits: { cpu: -1 } } },
      /resources\.limits\.cpu.*greater than or equal to 0/,
    ],
    [
      "an unknown resource",
      {},
      { resources: { requests: { ram: "1Gi" } } },
      /spec\.models\[0\]\.resources\.requests.*cpu, memory, ephemeral-storage and hugepages-/,
    ],
    [
      "an invalid label value in a node selector",
      {},
      { accelerator: { nodeSelector: { gpu: "a b" } } },
      /accelerator\.nodeSelector\.gpu.*should match/,
    ],
    [
      "a license key that is not a file name",
      { license: { secretRef: { name: "l", key: ".." } } },
      {},
      /license\.secretRef\.key.*should match/,
    ],
    ["an invalid MIG profile", {}, { accelerator: { mig: "small" } }, /accelerator\.mig.*should match/],
    [
      "a disruption budget that blocks every drain",
      { availability: { podDisruptionBudget: { maxUnavailable: 0 } } },
      {},
      /maxUnavailable.*greater than or equal to 1/,
    ],
    [
      "a disruption budget of 0 %",
      { availability: { podDisruptionBudget: { maxUnavailable: "0%" } } },
      {},
      /maxUnavailable.*should match/,
    ],
    [
      "a duplicate topology key",
      { availability: { topologySpread: [{ topologyKey: "zone" }, { topologyKey: "zone" }] } },
      {},
      /topologySpread\[1\]: Duplicate value/,
    ],
    [
      "a pod label that the operator selects pods by",
      {},
      { podTemplate: { metadata: { labels: { "tts.svc.dev/pool": "other" } } } },
      /podTemplate\.metadata\.labels must not contain labels of the operator/,
    ],
    [
      "an unknown field in podTemplate",
      { api: { podTemplate: { status: {} } } },
      {},
      /unknown field "spec\.api\.podTemplate\.status"/,
    ],
    [
      "a cache with two kinds of volumes",
      {},
      { cache: { emptyDir: {}, imageVolume: { reference: "a" } } },
      /spec\.models\[0\]\.cache.*exactly one of name, imageVolume, persistentVolumeClaim and emptyDir/,
    ],
    [
      "a cache source with an unknown URL scheme",
      {},
      { cache: { emptyDir: {}, sources: [{ url: "ftp://host/a" }] } },
      /sources\[0\]\.url.*should match/,
    ],
    [
      "a password in the URL of Valkey",
      { api: { rateLimit: { valkey: { url: "redis://me:pw@valkey" } } } },
      {},
      /api\.rateLimit\.valkey\.url.*should match/,
    ],
    [
      "a stream limit of zero",
      { api: { rateLimit: { streams: 0 } } },
      {},
      /streams.*greater than or equal to 1/,
    ],
    [
      "a route without a Gateway and an Ingress",
      { api: { route: { hostnames: ["a"] } } },
      {},
      /exactly one of gatewayRef and ingress/,
    ],
    [
      "a route without a host name",
      { api: { route: { hostnames: [], ingress: {} } } },
      {},
      /hostnames.*at least 1 item/,
    ],
    [
      "a URL as a host name of a route",
      { api: { route: { hostnames: ["http://a"], ingress: {} } } },
      {},
      /hostnames\[0\].*should match/,
    ],
    [
      "a duplicate host name of a route",
      { api: { route: { hostnames: ["a.example", "a.example"], ingress: {} } } },
      {},
      /hostnames\[1\]: Duplicate value/,
    ],
    [
      "an unknown scaling provider",
      {},
      { scaling: { provider: "VPA", maxReplicas: 2 } },
      /provider.*Unsupported value/,
    ],
    ["an image name with a space", {}, { image: "my image" }, /image.*should match/],
    ["an unknown field of a model", { replica: 3 }, {}, /unknown field "spec.replica"/],
  ])("reject %s", async (_what, spec, model, message) => {
    const body = { kind: "Status", status: "Failure", message: expect.stringMatching(message) };
    expect(await dryRun(deployment(spec, model))).toMatchObject({ body });
  });

  it.each(["a".repeat(41), "1st", "a.b"])("reject the deployment name %s", async (name) => {
    const message = expect.stringContaining(
      "metadata.name must be at most 40 characters of a-z, 0-9 and -, starting with a letter",
    );
    expect(await dryRun(deployment({}, {}, name))).toMatchObject({ body: { message } });
  });

  it("provide descriptions of fields for kubectl explain", async () => {
    const output = await kubectlOrThrow(address, ["explain", "ttsd.spec.models.rollout.maxSurge"]);
    expect(output).toContain("Number or percentage of pods above `replicas` that a rollout may start");
  });

  it("provide the scale subresource of a pool", async () => {
    const pool = {
      apiVersion: "tts.svc.dev/v1alpha1",
      kind: "TtsModelPool",
      metadata: { name: "scaled", namespace },
      spec: { deployment: "demo", pool: "mist", kind: "mist" },
    };
    await kubectlOrThrow(address, ["create", "-f", "-"], JSON.stringify(pool));
    await kubectlOrThrow(address, ["scale", "-n", namespace, "ttsmp/scaled", "--replicas=3"]);
    const replicas = ["get", "-n", namespace, "ttsmp/scaled", "-o", "jsonpath={.spec.replicas}"];
    expect(await kubectlOrThrow(address, replicas)).toBe("3");
  });

  it("define columns, short names and a category for kubectl get", async () => {
    const columns = await kubectlOrThrow(address, ["get", "-n", namespace, "ttsd", "-o", "wide"]);
    expect(columns.split("\n")[0]).toMatch(
      /^NAME\s+READY\s+LICENSE\s+MODELS\s+STREAMS\s+VERSION\s+AGE\s+ENDPOINT\s+REASON$/,
    );
    expect(await kubectlOrThrow(address, ["get", "-n", namespace, "tts", "-o", "name"])).toContain(
      "ttsdeployment",
    );
  });
});
