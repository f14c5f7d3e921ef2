import { describe, expect, it } from "vitest";
import { type LivePolicy, type PolicyCluster, policyRules } from "../../support/judges/network-policy.ts";

const namespaces = ["ns", "other"].map((name) => ({ name, labels: { "kubernetes.io/metadata.name": name } }));
const pods = [
  { namespace: "ns", ip: "10.0.0.1", labels: { app: "api" } },
  { namespace: "ns", ip: "10.0.0.2", labels: { app: "model" } },
  { namespace: "other", ip: "10.0.0.3", labels: { app: "api" } },
];

/** Returns the rules of each chain, without the rules that every table has. */
function chains(spec: LivePolicy["spec"], more: Partial<PolicyCluster> = {}): Record<string, string[]> {
  const policies = [{ metadata: { name: "policy", namespace: "ns" }, spec }];
  const text = policyRules("trial", { policies, pods, namespaces, ...more });
  return Object.fromEntries(
    [...text.matchAll(/chain (\S+) \{\n([^}]*(?:\{[^}]*\}[^}]*)*?)\n {2}\}/g)].map(
      ([, name = "", rules = ""]) => [
        name,
        rules
          .split("\n")
          .map((rule) => rule.trim())
          .filter((rule) => !/^(type filter|ct state|reject)/.test(rule)),
      ],
    ),
  );
}

const api = { matchLabels: { app: "api" } };
const model = { matchLabels: { app: "model" } };

describe("the nftables rules of NetworkPolicies", () => {
  it("form one table that rejects all connections of a selected pod except the allowed connections", () => {
    const policy = {
      metadata: { name: "policy", namespace: "ns" },
      spec: { podSelector: model, ingress: [{ from: [{ podSelector: api }], ports: [{ port: 8080 }] }] },
    };
    expect(policyRules("trial", { policies: [policy], pods, namespaces })).toBe(`table ip trial
delete table ip trial
table ip trial {
  chain ingress-1 {
    ip saddr { 10.0.0.1 } tcp dport 8080 return
    reject with icmp admin-prohibited
  }
  chain judge {
    type filter hook prerouting priority filter; policy accept;
    ct state established,related accept
    ip daddr 10.0.0.2 jump ingress-1
  }
}
`);
  });

  it.each<[string, LivePolicy["spec"], Record<string, string[]>]>([
    ["select every pod of the namespace for an empty selector", {}, { "ingress-0": [], "ingress-1": [] }],
    [
      "allow all connections for an empty rule",
      { podSelector: model, ingress: [{}] },
      { "ingress-1": ["return"] },
    ],
    [
      "select pods of other namespaces by the labels of the namespaces",
      { podSelector: model, ingress: [{ from: [{ namespaceSelector: {}, podSelector: api }] }] },
      { "ingress-1": ["ip saddr { 10.0.0.1, 10.0.0.3 } return"] },
    ],
    [
      "allow no connection if no pod matches the peer",
      { podSelector: model, ingress: [{ from: [{ podSelector: { matchLabels: { app: "unknown" } } }] }] },
      { "ingress-1": [] },
    ],
    [
      "contain networks with exceptions, and ranges of ports",
      {
        podSelector: api,
        policyTypes: ["Egress"],
        egress: [
          {
            to: [{ ipBlock: { cidr: "192.0.2.0/24", except: ["192.0.2.1/32"] } }],
            ports: [{ port: 80, endPort: 90 }, { protocol: "UDP" }],
          },
        ],
      },
      {
        "egress-0": [
          "ip daddr 192.0.2.0/24 ip daddr != { 192.0.2.1/32 } tcp dport 80-90 return",
          "ip daddr 192.0.2.0/24 ip daddr != { 192.0.2.1/32 } meta l4proto udp return",
        ],
      },
    ],
    [
      "apply to egress if the policy has egress rules, also without policyTypes",
      { podSelector: api, egress: [] },
      { "ingress-0": [], "egress-0": [] },
    ],
    [
      "support matchExpressions",
      { podSelector: { matchExpressions: [{ key: "app", operator: "NotIn", values: ["api"] }] } },
      { "ingress-1": [] },
    ],
  ])("%s", (_what, spec, expected) => {
    const { judge: _, ...rules } = chains(spec);
    expect(rules).toEqual(expected);
  });

  it.each([
    ["a named port", { ingress: [{ ports: [{ port: "http" }] }] }, /named port http/],
    [
      "an unknown operator",
      { podSelector: { matchExpressions: [{ key: "a", operator: "Gt" }] } },
      /operator Gt/,
    ],
  ])("cannot be created from %s", (_what, spec, message) => {
    expect(() => chains(spec)).toThrow(message);
  });
});
