/** Judges NetworkPolicies as a network that enforces them would (Kubernetes, "Network Policies"), for the parts that ours use. */
import { BlockList } from "node:net";
import type { Policy } from "../../operator/desired/network-policy.ts";

/** One end of a connection. A pod has labels; what is outside the cluster has none. */
export interface Party {
  readonly ip: string;
  readonly pod?: { readonly namespace: string; readonly labels: Record<string, string> };
}

export interface Connection {
  readonly from: Party;
  readonly to: Party;
  readonly port: number;
  readonly protocol?: "TCP" | "UDP";
}

type Spec = Policy["spec"];
type Peer = NonNullable<NonNullable<Spec["egress"]>[number]["to"]>[number];
type Rule = { peers: Peer[] | undefined; ports: { port?: unknown; protocol?: string }[] | undefined };

/** Both ends have a say: where no policy selects a pod for a direction, everything goes. */
export function isAllowed(policies: readonly Policy[], connection: Connection): boolean {
  return (
    admits(policies, "Egress", connection.from, connection.to, connection) &&
    admits(policies, "Ingress", connection.to, connection.from, connection)
  );
}

function admits(
  policies: readonly Policy[],
  direction: "Ingress" | "Egress",
  subject: Party,
  other: Party,
  connection: Connection,
): boolean {
  const { pod } = subject;
  const selecting = policies.filter(
    ({ metadata, spec }) =>
      pod?.namespace === metadata.namespace &&
      spec.policyTypes?.includes(direction) &&
      hasLabels(pod?.labels ?? {}, spec.podSelector?.matchLabels),
  );
  if (selecting.length === 0) return true;
  return selecting.some(({ metadata, spec }) =>
    rulesOf(spec, direction).some(
      ({ peers, ports }) =>
        portMatches(ports, connection) &&
        (!peers?.length || peers.some((peer) => peerMatches(peer, other, metadata.namespace))),
    ),
  );
}

function rulesOf(spec: Spec, direction: "Ingress" | "Egress"): Rule[] {
  if (direction === "Ingress") return spec.ingress.map(({ from, ports }) => ({ peers: from, ports }));
  return (spec.egress ?? []).map(({ to, ports }) => ({ peers: to, ports }));
}

function portMatches(ports: Rule["ports"], { port, protocol = "TCP" }: Connection): boolean {
  if (!ports?.length) return true;
  return ports.some((rule) => rule.port === port && (rule.protocol ?? "TCP") === protocol);
}

function peerMatches(peer: Peer, { ip, pod }: Party, policyNamespace: string | undefined): boolean {
  if (peer.ipBlock) return pod === undefined && isWithin(ip, peer.ipBlock.cidr);
  if (pod === undefined) return false;
  const namespaceLabels = { "kubernetes.io/metadata.name": pod.namespace };
  const there = peer.namespaceSelector
    ? (peer.namespaceSelector.matchExpressions ?? []).every(
        ({ key, operator, values }) =>
          operator === "In" && values?.includes(namespaceLabels[key as keyof typeof namespaceLabels]),
      ) && hasLabels(namespaceLabels, peer.namespaceSelector.matchLabels)
    : pod.namespace === policyNamespace;
  return there && hasLabels(pod.labels, peer.podSelector?.matchLabels);
}

function hasLabels(found: Record<string, string>, wanted: Record<string, string> = {}): boolean {
  return Object.entries(wanted).every(([key, value]) => found[key] === value);
}

function isWithin(ip: string, cidr: string): boolean {
  const [network = "", bits] = cidr.split("/");
  const family = network.includes(":") ? "ipv6" : "ipv4";
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  return list.check(ip, ip.includes(":") ? "ipv6" : "ipv4");
}
