import { children, fieldManager, labels, ports } from "../../config/contract/names.ts";
import type { TtsClassSpec } from "../../crds/tts-class.ts";
import { type Child, cacheChildMetadata, cacheSelector, childMetadata } from "../facts/child-metadata.ts";
import type {
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyPeer,
  V1NetworkPolicyPort,
  V1NetworkPolicySpec,
} from "../facts/kubernetes-object.ts";
import type { TtsDeployment, TtsModelCache } from "../facts/observed.ts";
import { databasePorts, providerPorts } from "./pods/api-keys.ts";
import { tlsIngressPorts } from "./pods/api-tls.ts";
import { apiSelector } from "./pods/deployment.ts";
import { downloadPorts } from "./pods/downloads.ts";
import { fetchPorts } from "./pods/model-cache.ts";
import { limitPorts } from "./pods/rate-limit.ts";
import { telemetryPorts } from "./pods/telemetry.ts";

/** An ingress rule with the field `from`, which the client library renames. */
type IngressRule = { from?: V1NetworkPolicyPeer[]; ports: V1NetworkPolicyPort[] };
export type NetworkPolicyChild = Child<{
  spec: Omit<V1NetworkPolicySpec, "ingress"> & { ingress: IngressRule[] };
}>;

/**
 * Returns the NetworkPolicies. Clients may connect to API pods. Only API pods, and the namespaces of
 * `metricsFrom`, may connect to model pods. The pods may open only connections that they need.
 */
export function networkPolicies(owner: TtsDeployment): NetworkPolicyChild[] {
  if (!owner.spec.networkPolicy.enabled) return [];
  return [apiPolicy(owner), modelPolicy(owner)];
}

/** Returns the NetworkPolicy of the pods that fetch the files of a cache, or undefined if it is disabled. */
export function cacheNetworkPolicy(
  owner: TtsModelCache,
  defaults: Pick<TtsClassSpec["defaults"], "downloads"> = {},
): NetworkPolicyChild | undefined {
  const { networkPolicy, preset, sources, downloads = defaults.downloads } = owner.spec;
  if (networkPolicy?.enabled !== true) return undefined;
  const out = [
    ...(preset === undefined ? [] : [443]),
    ...fetchPorts([{ ...(sources && { sources }) }]),
    ...downloadPorts(downloads),
  ];
  const outPorts = [...new Set(out)].sort((a, b) => a - b);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: cacheChildMetadata(owner, children.cacheNetworkPolicy(owner.metadata.name)),
    spec: {
      podSelector: { matchLabels: cacheSelector(owner) },
      policyTypes: ["Ingress", "Egress"],
      // The operator reads the progress. Its namespace is not part of the specification.
      ingress: [{ from: [{ namespaceSelector: {}, podSelector: operatorPods }], ports: tcp(ports.model) }],
      egress: [...names, toNetworks([], outPorts)],
    },
  };
}

const operatorPods = { matchLabels: { [labels.name]: fieldManager, [labels.component]: "operator" } };

function apiPolicy(owner: TtsDeployment): NetworkPolicyChild {
  const { apiServer, licenseEgress } = owner.spec.networkPolicy;
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: childMetadata(owner, children.apiService(owner.metadata.name), "api"),
    spec: {
      podSelector: { matchLabels: apiSelector(owner) },
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ ports: tcp(ports.api, ...tlsIngressPorts(owner.spec.api.tls)) }],
      egress: [
        ...names,
        { to: [{ podSelector: { matchLabels: allModelsSelector(owner) } }], ports: tcp(ports.model) },
        toNetworks(apiServer.cidrs, apiServer.ports),
        ...licenseEgress.map(({ cidr, port }) => toNetworks([cidr], [port])),
        ...[...portsBeside(owner.spec.api), ...issuerPorts(owner.spec)].map((port) => toNetworks([], [port])),
      ],
    },
  };
}

/** Returns the ports of other services to which API pods connect, at any address. */
function portsBeside(api: TtsDeployment["spec"]["api"]): number[] {
  return [...limitPorts(api.rateLimit), ...databasePorts(api), ...providerPorts(api)];
}

/**
 * Returns the port of the license issuer. Its addresses are unknown, so connections to this port are allowed
 * at every address. If `licenseEgress` contains the port, only the networks of `licenseEgress` are allowed.
 */
function issuerPorts({ license, networkPolicy }: TtsDeployment["spec"]): number[] {
  if (license?.endpoint === undefined) return [];
  const issuer = Number(new URL(license.endpoint).port || 443);
  return networkPolicy.licenseEgress.some(({ port }) => port === issuer) ? [] : [issuer];
}

/** Returns the policy for the pods of all pools. */
function modelPolicy(owner: TtsDeployment): NetworkPolicyChild {
  const { networkPolicy, models, telemetry } = owner.spec;
  const out = [
    ...fetchPorts(models.map(({ cache }) => cache)),
    ...(models.some(({ cache }) => cache?.sources) ? downloadPorts(owner.spec.downloads) : []),
    ...(telemetry === undefined ? [] : telemetryPorts(telemetry)),
  ];
  const outPorts = [...new Set(out)].sort((a, b) => a - b);
  const from: V1NetworkPolicyPeer[] = [{ podSelector: { matchLabels: apiSelector(owner) } }];
  const scraping = networkPolicy.metricsFrom.length > 0 ? [namespaces(networkPolicy.metricsFrom)] : [];
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: childMetadata(owner, children.modelServiceAccount(owner.metadata.name), "model"),
    spec: {
      podSelector: { matchLabels: allModelsSelector(owner) },
      policyTypes: ["Ingress", "Egress"],
      ingress: [
        { from: [...from, ...scraping], ports: tcp(ports.model) },
        ...(scraping.length > 0 ? [{ from: scraping, ports: tcp(ports.vllm) }] : []),
      ],
      ...(outPorts.length > 0 && { egress: [...names, toNetworks([], outPorts)] }),
    },
  };
}

function allModelsSelector({ metadata }: TtsDeployment): Record<string, string> {
  return { [labels.deployment]: metadata.name, [labels.component]: "model" };
}

function namespaces(values: string[]): V1NetworkPolicyPeer {
  const key = "kubernetes.io/metadata.name";
  return { namespaceSelector: { matchExpressions: [{ key, operator: "In", values }] } };
}

/**
 * The rules for DNS, which may run in a pod, on the node, or at a link-local address. A NetworkPolicy applies
 * to the port of the pod behind a Service, which may differ from 53 (it is 5353 on OpenShift). Therefore all
 * ports of the cluster's DNS pods are allowed.
 */
const names: V1NetworkPolicyEgressRule[] = [
  {
    ports: [
      { port: 53, protocol: "UDP" },
      { port: 53, protocol: "TCP" },
    ],
  },
  {
    to: [
      podsOf("kube-system", { "k8s-app": "kube-dns" }),
      podsOf("openshift-dns", { "dns.operator.openshift.io/daemonset-dns": "default" }),
    ],
  },
];

function podsOf(namespace: string, matchLabels: Record<string, string>): V1NetworkPolicyPeer {
  return { ...namespaces([namespace]), podSelector: { matchLabels } };
}

/** Returns a rule that allows the ports at these networks, or at every address if no network is given. */
function toNetworks(cidrs: readonly string[], numbers: readonly number[]): V1NetworkPolicyEgressRule {
  const to = cidrs.map((cidr) => ({ ipBlock: { cidr } }));
  return { ...(to.length > 0 && { to }), ports: tcp(...numbers) };
}

function tcp(...numbers: number[]): V1NetworkPolicyPort[] {
  return numbers.map((port) => ({ port, protocol: "TCP" }));
}
