import { describe, expect, it } from "vitest";
import { networkPolicies } from "../../../../operator/desired/network-policy.ts";
import { apiDeployment } from "../../../../operator/desired/pods/deployment.ts";
import { type Connection, isAllowed, type Party } from "../../../support/judges/network-policy.ts";
import {
  granted,
  plannedDeployment,
  serverSettings,
  ttsDeployment,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

const { server } = serverSettings;

/** Pods with the labels that the operator sets. */
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
const twin = podAt("10.0.0.4", "elsewhere", api.pod?.labels ?? {});
const prometheus = podAt("10.0.0.5", "monitoring", { app: "prometheus" });
const dns = podAt("10.0.0.6", "kube-system", { "k8s-app": "kube-dns" });
const openShiftDns = podAt("10.0.0.7", "openshift-dns", {
  "dns.operator.openshift.io/daemonset-dns": "default",
});
const dnsTwin = podAt("10.0.0.8", "ns", { "k8s-app": "kube-dns" });
const proxy = podAt("10.0.0.9", "kube-system", { "k8s-app": "kube-proxy" });
const nodeCache: Party = { ip: "169.254.20.10" };
const caller: Party = { ip: "203.0.113.9" };
const apiServer: Party = { ip: "192.0.2.1" };
const licenseServer: Party = { ip: "198.51.100.7" };

const policiesOf = (networkPolicy: object) =>
  networkPolicies(ttsDeployment({ networkPolicy: { enabled: true, ...networkPolicy } }));

type Case = [string, boolean, Omit<Connection, "port">, number];

describe("network policies", () => {
  it.each<Case>([
    ["a caller reaches the API", true, { from: caller, to: api }, 8000],
    ["a pod of another namespace reaches the API", true, { from: prometheus, to: api }, 8000],
    ["the API reaches a model", true, { from: api, to: model }, 8080],
    ["a neighbour reaches a model", false, { from: neighbour, to: model }, 8080],
    ["an API pod's twin elsewhere reaches a model", false, { from: twin, to: model }, 8080],
    ["a caller reaches a model", false, { from: caller, to: model }, 8080],
    ["Prometheus reaches a model", false, { from: prometheus, to: model }, 8080],
    ["one model reaches another", false, { from: model, to: model }, 8080],
    ["the API reaches another port of a model", false, { from: api, to: model }, 22],
    ["a caller reaches another port of the API", false, { from: caller, to: api }, 22],
    ["the API resolves names", true, { from: api, to: dns, protocol: "UDP" }, 53],
    [
      "the API resolves names of DNS pods on another port",
      true,
      { from: api, to: dns, protocol: "UDP" },
      1053,
    ],
    ["the API resolves names on OpenShift", true, { from: api, to: openShiftDns, protocol: "UDP" }, 5353],
    ["the API resolves names on OpenShift by TCP", true, { from: api, to: openShiftDns }, 5353],
    ["the API resolves names of the node's cache", true, { from: api, to: nodeCache, protocol: "UDP" }, 53],
    ["the API reaches another pod of kube-system", false, { from: api, to: proxy }, 5353],
    ["the API reaches what only has the label of DNS", false, { from: api, to: dnsTwin }, 5353],
    ["the API follows the API server", true, { from: api, to: apiServer }, 6443],
    ["the API reaches a neighbour", false, { from: api, to: neighbour }, 8080],
    ["a model reaches the world", false, { from: model, to: caller }, 443],
    ["a model resolves names", false, { from: model, to: dns, protocol: "UDP" }, 53],
    ["a neighbour reaches the world", true, { from: neighbour, to: caller }, 443],
  ])("%s: %s", (_what, allowed, connection, port) => {
    expect(isAllowed(policiesOf({}), { ...connection, port })).toBe(allowed);
  });

  it("let API pods connect to the given API server and license server only", () => {
    const policies = policiesOf({
      apiServer: { cidrs: ["192.0.2.0/28"], ports: [6443] },
      licenseEgress: [{ cidr: "198.51.100.0/24", port: 8443 }],
    });
    const may = (to: Party, port: number) => isAllowed(policies, { from: api, to, port });
    expect(may(apiServer, 6443)).toBe(true);
    expect(may(apiServer, 443)).toBe(false);
    expect(may(licenseServer, 8443)).toBe(true);
    expect(may(licenseServer, 6443)).toBe(false);
    expect(may(caller, 443)).toBe(false);
  });

  it.each([
    ["https://licenses.example.com/v1/status", [], true, 443],
    ["https://licenses.example.com:8443/v1/status", [], true, 8443],
    ["https://licenses.example.com:8443/v1/status", [], false, 443],
    ["https://licenses.example.com/v1", [{ cidr: "203.0.113.0/24", port: 8080 }], true, 443],
    ["https://licenses.example.com/v1", [{ cidr: "203.0.113.0/24", port: 443 }], false, 443],
  ])(
    "let API pods ask the license's issuer at %s, beside licenseEgress %j: %s",
    (endpoint, licenseEgress, allowed, port) => {
      const networkPolicy = {
        enabled: true,
        apiServer: { cidrs: ["192.0.2.0/28"], ports: [6443] },
        licenseEgress,
      };
      const wish = ttsDeployment({ license: { secretRef: { name: "license" }, endpoint }, networkPolicy });
      expect(isAllowed(networkPolicies(wish), { from: api, to: licenseServer, port })).toBe(allowed);
      expect(isAllowed(networkPolicies(wish), { from: model, to: licenseServer, port })).toBe(false);
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
    ["database of keys", "postgres://svc-tts@db.infra/tts", 5432, postgres],
    ["database of keys", "postgres://svc-tts@db.infra:6432/tts?sslmode=verify-full", 6432, postgres],
    ["provider of single sign-on", "https://login.example.com/realms/staff", 443, oidc],
    ["provider of single sign-on", "https://login.example.com:8443", 8443, oidc],
  ] as const)("let API pods reach the %s at %s, and models do not", (_what, url, port, apiOf) => {
    const networkPolicy = { enabled: true, apiServer: { cidrs: ["192.0.2.0/28"], ports: [6443] } };
    const policies = networkPolicies(ttsDeployment({ networkPolicy, api: apiOf(url) }));
    expect(isAllowed(policies, { from: api, to: neighbour, port })).toBe(true);
    expect(isAllowed(policies, { from: model, to: neighbour, port })).toBe(false);
    const without = networkPolicies(ttsDeployment({ networkPolicy }));
    expect(isAllowed(without, { from: api, to: neighbour, port })).toBe(false);
  });

  it("let the given namespaces read the metrics of models", () => {
    const policies = policiesOf({ metricsFrom: ["monitoring"] });
    expect(isAllowed(policies, { from: prometheus, to: model, port: 8080 })).toBe(true);
    expect(isAllowed(policies, { from: neighbour, to: model, port: 8080 })).toBe(false);
  });

  it("are absent if they are disabled, which allows all connections", () => {
    expect(networkPolicies(ttsDeployment())).toEqual([]);
    expect(isAllowed([], { from: neighbour, to: model, port: 8080 })).toBe(true);
  });
});
