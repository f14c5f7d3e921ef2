import { describe, expect, it } from "vitest";
import { cacheNetworkPolicy, networkPolicies } from "../../../../operator/desired/network-policy.ts";
import { apiDeployment } from "../../../../operator/desired/pods/deployment.ts";
import { cacheLabels } from "../../../../operator/facts/child-metadata.ts";
import type { TtsModelCache } from "../../../../operator/facts/observed.ts";
import { type Connection, isAllowed, type Party } from "../../../support/judges/network-policy.ts";
import {
  granted,
  plannedDeployment,
  serverSettings,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const { server } = serverSettings;

/** Returns the labels that the operator sets on the pods of a Deployment. */
const labelsOf = (child: ReturnType<typeof apiDeployment>) => child?.spec.template.metadata?.labels ?? {};
const podAt = (ip: string, namespace: string, labels: Record<string, string>): Party => ({
  ip,
  pod: { namespace, labels },
});
const api = podAt("10.0.0.1", "ns", labelsOf(apiDeployment(ttsDeployment(), undefined, granted, server)));
const model = podAt(
  "10.0.0.2",
  "ns",
  labelsOf(plannedDeployment(ttsModelPool(), undefined, granted, server)),
);
const neighbour = podAt("10.0.0.3", "ns", { app: "other" });
const impostor = podAt("10.0.0.4", "elsewhere", api.pod?.labels ?? {});
const prometheus = podAt("10.0.0.5", "monitoring", { app: "prometheus" });
const dns = podAt("10.0.0.6", "kube-system", { "k8s-app": "kube-dns" });
const openShiftDns = podAt("10.0.0.7", "openshift-dns", {
  "dns.operator.openshift.io/daemonset-dns": "default",
});
const dnsImpostor = podAt("10.0.0.8", "ns", { "k8s-app": "kube-dns" });
const proxy = podAt("10.0.0.9", "kube-system", { "k8s-app": "kube-proxy" });
const nodeCache: Party = { ip: "169.254.20.10" };
const client: Party = { ip: "203.0.113.9" };
const apiServer: Party = { ip: "192.0.2.1" };
const licenseServer: Party = { ip: "198.51.100.7" };

const policiesOf = (networkPolicy: object) =>
  networkPolicies(ttsDeployment({ networkPolicy: { enabled: true, ...networkPolicy } }));

type Case = [string, boolean, Omit<Connection, "port">, number];

describe("the network policies", () => {
  it.each<Case>([
    ["a client to the API", true, { from: client, to: api }, 8000],
    ["a pod of another namespace to the API", true, { from: prometheus, to: api }, 8000],
    ["the API to a model", true, { from: api, to: model }, 8080],
    ["another pod of the namespace to a model", false, { from: neighbour, to: model }, 8080],
    [
      "a pod with the labels of the API in another namespace to a model",
      false,
      { from: impostor, to: model },
      8080,
    ],
    ["a client to a model", false, { from: client, to: model }, 8080],
    ["Prometheus to a model", false, { from: prometheus, to: model }, 8080],
    ["a model to a model", false, { from: model, to: model }, 8080],
    ["the API to another port of a model", false, { from: api, to: model }, 22],
    ["a client to another port of the API", false, { from: client, to: api }, 22],
    ["the API to DNS", true, { from: api, to: dns, protocol: "UDP" }, 53],
    ["the API to another port of DNS pods", true, { from: api, to: dns, protocol: "UDP" }, 1053],
    ["the API to DNS on OpenShift", true, { from: api, to: openShiftDns, protocol: "UDP" }, 5353],
    ["the API to DNS on OpenShift by TCP", true, { from: api, to: openShiftDns }, 5353],
    ["the API to the DNS cache of the node", true, { from: api, to: nodeCache, protocol: "UDP" }, 53],
    ["the API to another pod of kube-system", false, { from: api, to: proxy }, 5353],
    [
      "the API to a pod that has the label of DNS in another namespace",
      false,
      { from: api, to: dnsImpostor },
      5353,
    ],
    ["the API to the API server", true, { from: api, to: apiServer }, 6443],
    ["the API to another pod of the namespace", false, { from: api, to: neighbour }, 8080],
    ["a model to the internet", false, { from: model, to: client }, 443],
    ["a model to DNS", false, { from: model, to: dns, protocol: "UDP" }, 53],
    ["another pod of the namespace to the internet", true, { from: neighbour, to: client }, 443],
  ])("decide about a connection from %s: %s", (_what, allowed, connection, port) => {
    expect(isAllowed(policiesOf({}), { ...connection, port })).toBe(allowed);
  });

  it("allow API pods to connect only to the given API server and license server", () => {
    const policies = policiesOf({
      apiServer: { cidrs: ["192.0.2.0/28"], ports: [6443] },
      licenseEgress: [{ cidr: "198.51.100.0/24", port: 8443 }],
    });
    const may = (to: Party, port: number) => isAllowed(policies, { from: api, to, port });
    expect(may(apiServer, 6443)).toBe(true);
    expect(may(apiServer, 443)).toBe(false);
    expect(may(licenseServer, 8443)).toBe(true);
    expect(may(licenseServer, 6443)).toBe(false);
    expect(may(client, 443)).toBe(false);
  });

  it.each([
    ["https://licenses.example.com/v1/status", [], true, 443],
    ["https://licenses.example.com:8443/v1/status", [], true, 8443],
    ["https://licenses.example.com:8443/v1/status", [], false, 443],
    ["https://licenses.example.com/v1", [{ cidr: "203.0.113.0/24", port: 8080 }], true, 443],
    ["https://licenses.example.com/v1", [{ cidr: "203.0.113.0/24", port: 443 }], false, 443],
  ])(
    "decide about a connection of API pods to the license issuer at %s with licenseEgress %j: %s",
    (endpoint, licenseEgress, allowed, port) => {
      const networkPolicy = {
        enabled: true,
        apiServer: { cidrs: ["192.0.2.0/28"], ports: [6443] },
        licenseEgress,
      };
      const deployment = ttsDeployment({
        license: { secretRef: { name: "license" }, endpoint },
        networkPolicy,
      });
      expect(isAllowed(networkPolicies(deployment), { from: api, to: licenseServer, port })).toBe(allowed);
      expect(isAllowed(networkPolicies(deployment), { from: model, to: licenseServer, port })).toBe(false);
    },
  );

  const valkey = (url: string) => ({ rateLimit: { valkey: { url } } });
  const postgres = (url: string) => ({ keys: { postgres: { url } } });
  const oidc = (issuer: string) => ({
    ...postgres("postgres://db.infra/tts"),
    dashboard: { url: "https://tts.example.com", oidc: { issuer, clientId: "tts" } },
  });

  it.each([
    ["Valkey", "redis://valkey.infra", 6379, valkey],
    ["Valkey", "rediss://valkey.infra:6380/1", 6380, valkey],
    ["database", "postgres://svc-tts@db.infra/tts", 5432, postgres],
    ["database", "postgres://svc-tts@db.infra:6432/tts?sslmode=verify-full", 6432, postgres],
    ["identity provider", "https://login.example.com/realms/staff", 443, oidc],
    ["identity provider", "https://login.example.com:8443", 8443, oidc],
  ] as const)("allow API pods but no model pods to connect to the %s at %s", (_what, url, port, apiOf) => {
    const networkPolicy = { enabled: true, apiServer: { cidrs: ["192.0.2.0/28"], ports: [6443] } };
    const policies = networkPolicies(ttsDeployment({ networkPolicy, api: apiOf(url) }));
    expect(isAllowed(policies, { from: api, to: neighbour, port })).toBe(true);
    expect(isAllowed(policies, { from: model, to: neighbour, port })).toBe(false);
    const without = networkPolicies(ttsDeployment({ networkPolicy }));
    expect(isAllowed(without, { from: api, to: neighbour, port })).toBe(false);
  });

  it("allow the given namespaces to read the metrics of models", () => {
    const policies = policiesOf({ metricsFrom: ["monitoring"] });
    expect(isAllowed(policies, { from: prometheus, to: model, port: 8080 })).toBe(true);
    expect(isAllowed(policies, { from: neighbour, to: model, port: 8080 })).toBe(false);
  });

  describe("of a TtsModelCache", () => {
    const cacheWith = (spec: object): TtsModelCache => ({
      apiVersion: "tts.svc.dev/v1alpha1",
      kind: "TtsModelCache",
      metadata: { name: "voices", namespace: "ns", uid: "uid", generation: 1 },
      spec: { storage: {}, networkPolicy: { enabled: true }, ...spec } as TtsModelCache["spec"],
    });
    const policyOf = (spec: object) => {
      const policy = cacheNetworkPolicy(cacheWith(spec));
      return policy === undefined ? [] : [policy];
    };
    const fetcher = podAt("10.0.0.20", "ns", cacheLabels(cacheWith({})));
    const operatorLabels = {
      "app.kubernetes.io/name": "tts-operator",
      "app.kubernetes.io/component": "operator",
    };
    const operator = podAt("10.0.0.21", "svc-tts-system", operatorLabels);
    const source = (url: string) => ({ sources: [{ url }] });

    it.each<[string, object, Party, number, boolean]>([
      ["HTTPS for a preset", { preset: "kokoro-82m" }, client, 443, true],
      ["plain HTTP for a preset", { preset: "kokoro-82m" }, client, 80, false],
      ["the port of a source", source("http://files.example:8081/a.onnx"), client, 8081, true],
      ["other ports", source("https://files.example/a.onnx"), client, 22, false],
      ["DNS", source("https://files.example/a.onnx"), dns, 53, true],
    ])("decide about connections of the fetching pods: %s", (_what, spec, to, port, allowed) => {
      expect(isAllowed(policyOf(spec), { from: fetcher, to, port })).toBe(allowed);
    });

    it("allow only the operator to read the progress, and select no other pods", () => {
      const policies = policyOf({ preset: "kokoro-82m" });
      expect(isAllowed(policies, { from: operator, to: fetcher, port: 8080 })).toBe(true);
      expect(isAllowed(policies, { from: neighbour, to: fetcher, port: 8080 })).toBe(false);
      expect(isAllowed(policies, { from: neighbour, to: model, port: 8080 })).toBe(true);
    });

    it("do not exist if they are disabled", () => {
      expect(policyOf({ networkPolicy: undefined })).toEqual([]);
      expect(policyOf({ networkPolicy: { enabled: false } })).toEqual([]);
    });
  });

  it("do not exist if they are disabled, which allows all connections", () => {
    expect(networkPolicies(ttsDeployment())).toEqual([]);
    expect(isAllowed([], { from: neighbour, to: model, port: 8080 })).toBe(true);
  });
});
