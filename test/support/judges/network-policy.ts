/**
 * Evaluates which connections NetworkPolicies allow (Kubernetes, "Network Policies"). It also generates
 * nftables rules for a cluster with a network plugin that does not enforce the policies.
 */
import { BlockList } from "node:net";

export interface PolicyPod {
  readonly namespace: string;
  readonly ip: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface PolicyNamespace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

interface Port {
  readonly port?: number | string;
  readonly endPort?: number;
  readonly protocol?: string;
}

interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly Port[];
}

/** A NetworkPolicy as the API server returns it. */
export interface LivePolicy {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly spec: {
    readonly podSelector?: Selector;
    readonly policyTypes?: readonly string[];
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
  };
}

export interface PolicyCluster {
  readonly policies: readonly LivePolicy[];
  readonly pods: readonly PolicyPod[];
  readonly namespaces: readonly PolicyNamespace[];
}

const directions = {
  Ingress: { own: "daddr", peer: "saddr", peers: "from", rules: "ingress" },
  Egress: { own: "saddr", peer: "daddr", peers: "to", rules: "egress" },
} as const;
type Direction = keyof typeof directions;

/**
 * Returns nftables rules that replace the table with this name. They filter the first packet of each
 * connection from a pod or from outside of the node, after the translation of Service addresses. They do not
 * filter connections of the node itself, such as probes of the kubelet. A rejected connection gets the
 * response "administratively prohibited".
 */
export function policyRules(table: string, cluster: PolicyCluster): string {
  const chains = (Object.keys(directions) as Direction[]).flatMap((direction) =>
    cluster.pods.flatMap((pod, index) => {
      const selecting = cluster.policies.filter((policy) => selects(policy, direction, pod));
      if (selecting.length === 0) return [];
      const accepted = selecting.flatMap((policy) => matches(policy, direction, cluster));
      const name = `${direction.toLowerCase()}-${index}`;
      return [{ name, match: `ip ${directions[direction].own} ${pod.ip}`, accepted }];
    }),
  );
  const lines = [
    `table ip ${table}`,
    `delete table ip ${table}`,
    `table ip ${table} {`,
    ...chains.flatMap(({ name, accepted }) => [
      `  chain ${name} {`,
      ...[...new Set(accepted)].map((match) => `    ${`${match} return`.trim()}`),
      "    reject with icmp admin-prohibited",
      "  }",
    ]),
    "  chain judge {",
    "    type filter hook prerouting priority filter; policy accept;",
    "    ct state established,related accept",
    ...chains.map(({ name, match }) => `    ${match} jump ${name}`),
    "  }",
    "}",
  ];
  return `${lines.join("\n")}\n`;
}

function selects({ metadata, spec }: LivePolicy, direction: Direction, pod: Omit<PolicyPod, "ip">): boolean {
  const types = spec.policyTypes ?? ["Ingress", ...(spec.egress === undefined ? [] : ["Egress"])];
  return (
    types.includes(direction) &&
    metadata.namespace === pod.namespace &&
    isSelected(spec.podSelector, pod.labels)
  );
}

/** Returns the first part of a rule for each connection that a policy allows. */
function matches({ metadata, spec }: LivePolicy, direction: Direction, cluster: PolicyCluster): string[] {
  const { peer, peers, rules } = directions[direction];
  return (spec[rules] ?? []).flatMap((rule) => {
    const from = rule[peers] ?? [];
    const addresses =
      from.length === 0 ? [""] : from.flatMap((one) => addressMatch(one, peer, metadata.namespace, cluster));
    const ports = (rule.ports ?? []).length === 0 ? [""] : (rule.ports ?? []).map(portMatch);
    return addresses.flatMap((address) => ports.map((port) => `${address} ${port}`.trim()));
  });
}

function addressMatch(
  peer: Peer,
  field: string,
  own: string | undefined,
  { pods, namespaces }: PolicyCluster,
): string[] {
  const { ipBlock, namespaceSelector, podSelector } = peer;
  if (ipBlock !== undefined) {
    const except = ipBlock.except ?? [];
    const without = except.length > 0 ? [`ip ${field} != { ${except.join(", ")} }`] : [];
    return [[`ip ${field} ${ipBlock.cidr}`, ...without].join(" ")];
  }
  const within = namespaces
    .filter(({ name, labels }) =>
      namespaceSelector === undefined ? name === own : isSelected(namespaceSelector, labels),
    )
    .map(({ name }) => name);
  const found = pods.filter(
    ({ namespace, labels }) => within.includes(namespace) && isSelected(podSelector, labels),
  );
  return found.length === 0 ? [] : [`ip ${field} { ${found.map(({ ip }) => ip).join(", ")} }`];
}

function portMatch({ port, endPort, protocol = "TCP" }: Port): string {
  const name = protocol.toLowerCase();
  if (port === undefined) return `meta l4proto ${name}`;
  if (typeof port === "string") throw new Error(`the named port ${port} of a NetworkPolicy is not supported`);
  return `${name} dport ${endPort === undefined ? port : `${port}-${endPort}`}`;
}

function isSelected(
  { matchLabels = {}, matchExpressions = [] }: Selector = {},
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key];
      const isIn = value !== undefined && values.includes(value);
      switch (operator) {
        case "In":
          return isIn;
        case "NotIn":
          return !isIn;
        case "Exists":
          return value !== undefined;
        case "DoesNotExist":
          return value === undefined;
        default:
          throw new Error(`operator ${operator} in the selector of a NetworkPolicy is not supported`);
      }
    })
  );
}

/** One end of a connection. An end outside of the cluster has no pod. */
export interface Party {
  readonly ip: string;
  readonly pod?: Omit<PolicyPod, "ip">;
}

export interface Connection {
  readonly from: Party;
  readonly to: Party;
  readonly port: number;
  readonly protocol?: "TCP" | "UDP";
}

/**
 * Returns whether the policies of both ends allow a connection. If no policy selects a pod for a direction,
 * all connections in this direction are allowed.
 */
export function isAllowed(policies: readonly LivePolicy[], connection: Connection): boolean {
  const { from, to } = connection;
  return (
    admits(policies, "Egress", from, to, connection) && admits(policies, "Ingress", to, from, connection)
  );
}

function admits(
  policies: readonly LivePolicy[],
  direction: Direction,
  { pod }: Party,
  other: Party,
  connection: Connection,
): boolean {
  const { peers, rules } = directions[direction];
  const selecting = policies.filter((policy) => pod !== undefined && selects(policy, direction, pod));
  if (selecting.length === 0) return true;
  return selecting.some(({ metadata, spec }) =>
    (spec[rules] ?? []).some((rule) => {
      const allowed = rule[peers] ?? [];
      return (
        portMatches(rule.ports ?? [], connection) &&
        (allowed.length === 0 || allowed.some((peer) => peerMatches(peer, other, metadata.namespace)))
      );
    }),
  );
}

function portMatches(ports: readonly Port[], { port, protocol = "TCP" }: Connection): boolean {
  return (
    ports.length === 0 ||
    ports.some((allowed) => allowed.port === port && (allowed.protocol ?? "TCP") === protocol)
  );
}

function peerMatches(peer: Peer, { ip, pod }: Party, own: string | undefined): boolean {
  if (peer.ipBlock) return pod === undefined && isWithin(ip, peer.ipBlock.cidr);
  if (pod === undefined) return false;
  const namespaceMatches = peer.namespaceSelector
    ? isSelected(peer.namespaceSelector, { "kubernetes.io/metadata.name": pod.namespace })
    : pod.namespace === own;
  return namespaceMatches && isSelected(peer.podSelector, pod.labels);
}

function isWithin(ip: string, cidr: string): boolean {
  const [network = "", bits] = cidr.split("/");
  const list = new BlockList();
  list.addSubnet(network, Number(bits), network.includes(":") ? "ipv6" : "ipv4");
  return list.check(ip, ip.includes(":") ? "ipv6" : "ipv4");
}
