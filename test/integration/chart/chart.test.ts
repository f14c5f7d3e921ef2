import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { children, labels, ports } from "../../../config/contract/names.ts";

const chart = join(import.meta.dirname, "../../../charts/tts-operator");
const publicKey = { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };
const jwks = JSON.stringify({ keys: [publicKey] });

let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-tts-chart-"));
});
afterAll(() => rm(work, { recursive: true, force: true }));

const execute = promisify(execFile);
const tool = (name: string, args: string[]) =>
  execute(join(inject("controlPlane").binDirectory, name), args, { maxBuffer: 64 * 1024 * 1024 });

interface Rendered {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly data: Record<string, string>;
  readonly spec: unknown;
  readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}

interface PodSpec {
  readonly securityContext: object;
  readonly containers: readonly {
    readonly env: readonly { readonly name: string; readonly value?: string }[];
    readonly securityContext: object;
  }[];
}

interface PodTemplate {
  readonly metadata: { readonly annotations: Record<string, string> };
  readonly spec: PodSpec;
}

interface SelectorSpec {
  readonly selector: Record<string, string>;
}

const templates = new Map<string, Promise<string>>();

/** Returns the rendered chart. Each set of values is rendered only once. */
function template(values: unknown = {}, kubeVersion = "1.36.3"): Promise<string> {
  const key = JSON.stringify([values, kubeVersion]);
  const known = templates.get(key) ?? runHelmTemplate(values, kubeVersion);
  templates.set(key, known);
  return known;
}

async function runHelmTemplate(values: unknown, kubeVersion: string): Promise<string> {
  const path = join(work, `values-${templates.size}.json`);
  await writeFile(path, JSON.stringify(values));
  const flags = ["--namespace", "tts-system", "--kube-version", kubeVersion, "--values", path];
  return (await tool("helm", ["template", "tts", chart, ...flags])).stdout;
}

async function render(values: unknown = {}): Promise<Rendered[]> {
  return parseAllDocuments(await template(values))
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null);
}

function find(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (!found) throw new Error(`the chart did not render ${kind} ${name}`);
  return found;
}

function operatorPod(objects: readonly Rendered[]): PodTemplate {
  return (find(objects, "Deployment", "tts-tts-operator").spec as { template: PodTemplate }).template;
}

const everything = {
  images: {
    server: { digest: `sha256:${"a".repeat(64)}` },
    operator: { repository: "registry.local:5000/x/op", tag: "1" },
  },
  imagePullSecrets: [{ name: "pull" }],
  replicas: 3,
  watchNamespaces: ["a", "b"],
  license: { jwks, required: true, development: { enabled: true, jwks } },
  nodeSelector: { pool: "system" },
  tolerations: [{ key: "system", operator: "Exists" }],
  affinity: { podAntiAffinity: {} },
  priorityClassName: "system-cluster-critical",
  podAnnotations: { note: "yes" },
  podLabels: { team: "speech" },
  serviceAccount: { name: "other", annotations: { note: "yes" } },
  logLevel: "debug",
  test: { endpoint: "http://demo-api.demo.svc:8000", apiKeySecret: { name: "key" } },
};

describe("the chart", () => {
  it("renders every value into its field", async () => {
    const objects = await render(everything);
    const { spec } = operatorPod(objects);
    expect(spec).toMatchObject({
      serviceAccountName: "other",
      imagePullSecrets: [{ name: "pull" }],
      nodeSelector: { pool: "system" },
      priorityClassName: "system-cluster-critical",
    });
    const [operator] = spec.containers;
    expect(operator).toMatchObject({ image: "registry.local:5000/x/op:1", args: ["run"] });
    const environment = Object.fromEntries((operator?.env ?? []).map(({ name, value }) => [name, value]));
    expect(environment).toMatchObject({
      TTS_SERVER_IMAGE: `ghcr.io/svc-tts/server@sha256:${"a".repeat(64)}`,
      TTS_WATCH_NAMESPACES: "a,b",
      // Two releases in one namespace have separate leases, and therefore separate leaders.
      TTS_LEASE_NAME: "tts-tts-operator",
      TTS_DEVELOPMENT: "true",
      TTS_LICENSE_REQUIRED: "true",
      TTS_LOG_LEVEL: "debug",
    });
    const keys = find(objects, "ConfigMap", "tts-tts-operator-license-keys").data;
    expect(JSON.parse(keys["jwks.json"] ?? "")).toEqual({ keys: [publicKey] });
    expect(environment.TTS_LICENSE_KEYS_FILE).toMatch(/\/jwks\.json$/);
    expect(environment.TTS_DEVELOPMENT_KEYS_FILE).toMatch(/\/development-jwks\.json$/);
    expect(Object.keys(keys)).toEqual(["jwks.json", "development-jwks.json"]);
  });

  it("replaces the operator pods only when the license keys change", async () => {
    const hash = async (values: unknown) =>
      operatorPod(await render(values)).metadata.annotations["checksum/license-keys"];
    expect(await hash({ license: { jwks } })).not.toBe(await hash({}));
    expect(await hash({ logLevel: "debug" })).toBe(await hash({}));
  });

  it("complies with Pod Security restricted, including its test pod", async () => {
    const objects = await render();
    const pods = [operatorPod(objects).spec, find(objects, "Pod", "tts-tts-operator-test").spec as PodSpec];
    for (const { securityContext, containers } of pods) {
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      });
      for (const container of containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
          readOnlyRootFilesystem: true,
        });
      }
    }
  });

  it("does not select its test pod by the Service or the Deployment", async () => {
    const objects = await render();
    const { labels } = find(objects, "Pod", "tts-tts-operator-test").metadata;
    const service = find(objects, "Service", "tts-tts-operator-metrics").spec as SelectorSpec;
    const deployment = find(objects, "Deployment", "tts-tts-operator").spec as {
      selector: { matchLabels: Record<string, string> };
    };
    for (const selector of [service.selector, deployment.selector.matchLabels]) {
      expect(Object.entries(selector).every(([key, value]) => labels[key] === value)).toBe(false);
    }
  });

  it("allows only the connections that the operator needs with a NetworkPolicy", async () => {
    expect((await render()).map(({ kind }) => kind)).not.toContain("NetworkPolicy");
    const objects = await render({ networkPolicy: { enabled: true, metricsFrom: ["monitoring"] } });
    const policy = find(objects, "NetworkPolicy", "tts-tts-operator").spec;
    const { selector } = find(objects, "Deployment", "tts-tts-operator").spec as { selector: object };
    const monitoring = { key: "kubernetes.io/metadata.name", operator: "In", values: ["monitoring"] };
    expect(policy).toEqual({
      podSelector: selector,
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        { from: [{ podSelector: {} }], ports: [{ port: "probes", protocol: "TCP" }] },
        {
          from: [{ namespaceSelector: { matchExpressions: [monitoring] } }],
          ports: [{ port: "metrics", protocol: "TCP" }],
        },
      ],
      egress: [
        {
          ports: [
            { port: 53, protocol: "UDP" },
            { port: 53, protocol: "TCP" },
          ],
        },
        { to: expect.arrayContaining([expect.objectContaining({ podSelector: expect.anything() })]) },
        {
          ports: [
            { port: 443, protocol: "TCP" },
            { port: 6443, protocol: "TCP" },
          ],
        },
        {
          ports: [{ port: ports.api, protocol: "TCP" }],
          to: [
            {
              namespaceSelector: {},
              podSelector: {
                matchLabels: { [labels.component]: "api" },
                matchExpressions: [{ key: labels.deployment, operator: "Exists" }],
              },
            },
          ],
        },
        {
          ports: [{ port: ports.model, protocol: "TCP" }],
          to: [
            {
              namespaceSelector: {},
              podSelector: {
                matchLabels: { [labels.component]: "model-cache" },
                matchExpressions: [{ key: labels.modelCache, operator: "Exists" }],
              },
            },
          ],
        },
      ],
    });
  });

  it("keeps the CRDs after an uninstallation by default, and can omit them or delete them with the release", async () => {
    const crds = async (values: unknown) =>
      (await render(values)).filter(({ kind }) => kind === "CustomResourceDefinition");
    const defaultCrds = await crds({});
    expect(defaultCrds.length).toBeGreaterThan(0);
    for (const { metadata } of defaultCrds)
      expect(metadata.annotations).toHaveProperty(["helm.sh/resource-policy"], "keep");
    for (const { metadata } of await crds({ crds: { keep: false } })) {
      expect(metadata.annotations ?? {}).not.toHaveProperty(["helm.sh/resource-policy"]);
    }
    expect(await crds({ crds: { enabled: false } })).toEqual([]);
  });

  it("grants the operator permissions only in the watched namespaces if watchNamespaces is set", async () => {
    const kinds = async (values: unknown) => (await render(values)).map(({ kind }) => kind);
    expect(await kinds({})).toContain("ClusterRole");
    expect(await kinds({ watchNamespaces: ["a", "b"] })).not.toContain("ClusterRole");
    const rolesOf = async (values: unknown) =>
      JSON.stringify((await render(values)).filter(({ kind }) => /Role$/.test(kind)));
    expect(await rolesOf({})).toContain("ttsclasses");
    expect(await rolesOf({ watchNamespaces: ["a"] })).not.toContain("ttsclasses");
  });

  it("adds TtsDeployments to the user-facing roles of Kubernetes by default", async () => {
    const label = (role: string) => `rbac.authorization.k8s.io/aggregate-to-${role}`;
    const rolesOf = async (values: unknown, role: string) =>
      (await render(values))
        .filter(({ kind, metadata }) => kind === "ClusterRole" && metadata.labels?.[label(role)] === "true")
        .map(({ metadata }) => metadata.name);
    expect(await rolesOf({}, "view")).toEqual([expect.stringMatching(/-view$/)]);
    for (const role of ["edit", "admin"])
      expect(await rolesOf({}, role)).toEqual([
        expect.stringMatching(/-view$/),
        expect.stringMatching(/-edit$/),
      ]);
    expect(await rolesOf({ userRoles: { create: false } }, "edit")).toEqual([]);
  });

  it("lets editors scale pools, but neither write nor delete them", async () => {
    const edit = (await render({})).find(({ metadata }) => metadata.name.endsWith("-edit"));
    const verbsOn = (resource: string) =>
      edit?.rules?.filter(({ resources }) => resources.includes(resource)).flatMap(({ verbs }) => verbs);
    expect(verbsOn("ttsmodelpools")).toEqual([]);
    expect(verbsOn("ttsmodelpools/scale")).toEqual(["update", "patch"]);
  });

  it.each(["view", "edit"])(
    "lets users with the namespaced role %s read the history of pools",
    async (role) => {
      const roles = await render({ watchNamespaces: ["a"] });
      const found = roles.find(({ kind, metadata }) => kind === "Role" && metadata.name.endsWith(`-${role}`));
      expect(found?.rules).toContainEqual({
        apiGroups: ["apps"],
        resources: ["controllerrevisions"],
        verbs: ["get", "list", "watch"],
      });
    },
  );
});

describe("the chart rejects", () => {
  it.each([
    ["an unknown value", { replica: 2 }, "replica"],
    ["an unknown image", { images: { sever: {} } }, "sever"],
    ["a string as a number", { replicas: "2" }, "replicas"],
    ["a negative number of replicas", { replicas: -1 }, "replicas"],
    ["an unknown pull policy", { images: { server: { pullPolicy: "Sometimes" } } }, "pullPolicy"],
    ["an unknown log level", { logLevel: "loud" }, "logLevel"],
    ["an invalid name of a namespace", { watchNamespaces: ["A_b"] }, "watchNamespaces"],
    [
      "a repository with a space and a tag",
      { images: { operator: { repository: "x/op latest" } } },
      "repository",
    ],
    ["an invalid digest", { images: { operator: { digest: "sha256:12" } } }, "digest"],
    ["an endpoint with a path", { test: { endpoint: "http://demo/v1/svc-tts" } }, "endpoint"],
    ["an invalid resource quantity", { resources: { limits: { memory: "much" } } }, "memory"],
    ["license keys that are not JSON", { license: { jwks: "----" } }, "license.jwks is not JSON"],
    [
      "a license key outside a key set",
      { license: { jwks: JSON.stringify(publicKey) } },
      "not to a single key",
    ],
    [
      "a private license key",
      { license: { jwks: JSON.stringify({ keys: [{ ...publicKey, d: "x" }] }) } },
      "private key",
    ],
    [
      "a required license without a key",
      { license: { required: true } },
      "license.required is true, but no license key is set",
    ],
    [
      "development licenses without development keys",
      { license: { development: { enabled: true } } },
      "development.jwks is empty",
    ],
    ["a registry with a scheme", { global: { imageRegistry: "https://registry.example" } }, "imageRegistry"],
    ["an API server outside a network", { networkPolicy: { apiServer: { cidrs: ["192.0.2.10"] } } }, "cidrs"],
    ["a volume mount without a path", { extraVolumeMounts: [{ name: "ca" }] }, "mountPath"],
    [
      "a spread constraint without a topology",
      { topologySpreadConstraints: [{ maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" }] },
      "topologyKey",
    ],
    [
      "a pod label that the chart sets",
      { podLabels: { "app.kubernetes.io/instance": "other" } },
      "podLabels contains app.kubernetes.io/instance",
    ],
    [
      "a missing name of an existing ServiceAccount",
      { serviceAccount: { create: false } },
      "serviceAccount.name is empty",
    ],
  ])("%s", async (_what, values, why) => {
    await expect(template(values)).rejects.toThrow(why);
  });

  it("a Kubernetes version that is too old", async () => {
    await expect(template({}, "1.29.0")).rejects.toThrow("1.30");
  });
});

describe("the samples", () => {
  it.each(["tts-deployment", "minimal", "mist-only", "scale-to-zero", "tts-class"])(
    "%s is accepted by the API server",
    async (name) => {
      const { kubeconfigPath } = inject("controlPlane");
      const kubectl = (...args: string[]) => tool("kubectl", ["--kubeconfig", kubeconfigPath, ...args]);
      const sample = join(chart, `../../config/samples/${name}.yaml`);
      const { stdout } = await kubectl("apply", "--dry-run=server", "-n", "default", "-f", sample);
      expect(stdout).toContain("created (server dry run)");
    },
  );

  it("have the same Service name in NOTES.txt as in the operator", async () => {
    const notes = await readFile(join(chart, "templates/NOTES.txt"), "utf8");
    expect(notes).toContain(`service/${children.apiService("demo")} `);
  });
});
