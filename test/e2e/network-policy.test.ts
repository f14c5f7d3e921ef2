/**
 * Tests the NetworkPolicies of a `TtsDeployment` with real connections: the documented connections are
 * allowed, and all others are blocked. The network of the cluster of `KUBECONFIG` enforces the policies. The
 * network of the local cluster does not enforce them, so the test adds equivalent nftables rules to its node.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { labels } from "../../config/contract/names.ts";
import { Deployed } from "../support/cluster/deployed.ts";
import { Kubectl, type KubeObject, run } from "../support/cluster/real-cluster.ts";
import { arcana, World } from "../support/cluster/world.ts";
import { eventually } from "../support/eventually.ts";
import { type LivePolicy, policyRules } from "../support/judges/network-policy.ts";

const cluster = inject("cluster");
const name = "guarded";
const world = new World(cluster, "policies");
const elsewhere = new World(cluster, "elsewhere");
const deployed = new Deployed(world, name);
const table = world.namespace.replaceAll("-", "_");
const answering = (port: number) =>
  `import { createServer } from "node:http"; createServer((_, answer) => answer.end()).listen(${port});`;
const licensePort = 8443;
const backendPort = 4318;

/** The pod that opens a connection. */
interface Origin {
  readonly world: World;
  readonly pod: string;
}
const client: Origin = { world, pod: "client" };
/** A pod with the labels of an API pod, in another namespace. */
const twin: Origin = { world: elsewhere, pod: "client" };
let api: Origin;
let model: Origin;
const licenseEgress: object[] = [];
const addresses = { api: "", model: "", license: "", backend: "" };

beforeAll(async () => {
  await Promise.all([world.open(), elsewhere.open()]);
  const license = await world.serve("license", licensePort, answering(licensePort));
  const backend = await world.serve("backend", backendPort, answering(backendPort));
  Object.assign(addresses, {
    license: new URL(license.url).hostname,
    backend: new URL(backend.url).hostname,
  });
  licenseEgress.push({ cidr: `${await ipOf("license")}/32`, port: licensePort });
  await world.deploy(name, {
    models: [arcana()],
    telemetry: { protocol: "http/protobuf", endpoint: backend.url },
  });
  const [apiPod] = await deployed.apiPods();
  const [modelPod = ""] = await deployed.pods("arcana");
  api = { world, pod: apiPod?.metadata.name ?? "" };
  model = { world, pod: modelPod };
  Object.assign(addresses, { api: await ipOf(api.pod), model: await ipOf(modelPod) });
  await Promise.all([world.clientReady(), elsewhere.clientReady()]);
  const like = Object.entries(apiPod?.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  await elsewhere.kubectl.do("label", "pod", "client", "--overwrite", ...like);
});

afterAll(() =>
  Promise.all([
    world.close(),
    elsewhere.close(),
    cluster.isLocal && nft(`table ip ${table}\ndelete table ip ${table}\n`),
  ]),
);

type Attempt = [string, () => Origin, () => [string, number]];
const toLicense: Attempt = [
  "the API reaches the license server",
  () => api,
  () => [addresses.license, licensePort],
];
const allowed: Attempt[] = [
  ["any pod reaches the API", () => client, () => [addresses.api, 8000]],
  ["the API reaches the model", () => api, () => [addresses.model, 8080]],
  // In some networks, such as Cilium, a CIDR block matches only addresses outside the cluster.
  ...(cluster.isLocal ? [toLicense] : []),
  ["the API reaches the API server", () => api, () => ["kubernetes.default.svc", 443]],
  ["the model reaches the telemetry endpoint", () => model, () => [addresses.backend, backendPort]],
  ["a pod reaches another pod that no policy selects", () => client, () => [addresses.license, licensePort]],
];
const blocked: Attempt[] = [
  [
    "a connection from another pod of the namespace to the model",
    () => client,
    () => [addresses.model, 8080],
  ],
  [
    "a connection from a pod of another namespace with an API pod's labels to the model",
    () => twin,
    () => [addresses.model, 8080],
  ],
  [
    "a connection from the API to an address that the policy does not list",
    () => api,
    () => [addresses.backend, backendPort],
  ],
  ["a connection from the model to the license server", () => model, () => [addresses.license, licensePort]],
  ["a connection from the model to the API", () => model, () => [addresses.api, 8000]],
];

/** The rules of the node reject a connection immediately. Other networks may drop its packets. */
const blockedResult = cluster.isLocal ? /^EHOSTUNREACH$/ : /^(E[A-Z]+|no answer)$/;

describe("without NetworkPolicies", () => {
  it.each(blocked)("%s is allowed", async (_what, from, to) => {
    expect(await connect(from(), ...to())).toBe("connected");
  });
});

describe("with enforced NetworkPolicies", () => {
  beforeAll(async () => {
    const pods = await deployed.allPods();
    await deployed.patch({ networkPolicy: { enabled: true, licenseEgress } });
    await eventually(
      "one NetworkPolicy for API pods and one for model pods",
      async () => (await policies()).length === 2,
    );
    expect(await deployed.allPods(), "the operator replaces no pod").toEqual(pods);
    if (cluster.isLocal) await nft(await rules());
  });

  it.each(blocked)("%s is blocked", async (_what, from, to) => {
    await eventually(
      "the cluster's network to block the connection (check that the network enforces NetworkPolicies)",
      async () => blockedResult.test(await connect(from(), ...to())),
    );
  });

  it.each(allowed)("%s", async (_what, from, to) => {
    expect(await connect(from(), ...to())).toBe("connected");
  });

  it("a request passes all tiers, from DNS to the model", async () => {
    const body = { text: "Only this pod may ask for this.", speaker: "luna", modelId: "arcana" };
    expect(await world.speak(name, body)).toMatchObject({ status: 200 });
    await world.condition(name, "Ready", "True");
  });
});

async function policies(): Promise<LivePolicy[]> {
  const selector = `${labels.deployment}=${name}`;
  return (await world.kubectl.list("networkpolicies", selector)) as KubeObject[] & LivePolicy[];
}

/** Returns the nftables rules for the current policies, for the pods of this test and of DNS. */
async function rules(): Promise<string> {
  const all = [world.kubectl, elsewhere.kubectl, new Kubectl("kube-system")];
  const pods = await Promise.all(all.map((kubectl) => kubectl.list("pods")));
  const namespaces = await world.kubectl.list("namespaces");
  return policyRules(table, {
    policies: await policies(),
    pods: pods.flat().map(({ metadata, status }) => ({
      namespace: metadata.namespace ?? "",
      ip: status.podIP as string,
      labels: metadata.labels ?? {},
    })),
    namespaces: namespaces.map(({ metadata }) => ({ name: metadata.name, labels: metadata.labels ?? {} })),
  });
}

async function nft(text: string): Promise<void> {
  const script = fileURLToPath(new URL("../cluster/node-nft.sh", import.meta.url));
  const ran = await run(script, [], text);
  if (ran.code !== 0) throw new Error(`${script} could not load the nftables rules: ${ran.stderr}\n${text}`);
}

async function ipOf(pod: string): Promise<string> {
  const found = await world.kubectl.get("pod", pod);
  return found?.status.podIP as string;
}

/**
 * Opens a TCP connection from a pod, which resolves the host name.
 * @returns `connected`, the code of the error, or `no answer` if the network drops the packets
 */
async function connect({ world, pod }: Origin, host: string, port: number): Promise<string> {
  const script = `
    const socket = require("node:net").connect(${port}, ${JSON.stringify(host)});
    const end = (what) => { console.log(what); process.exit(); };
    socket.once("connect", () => end("connected"));
    socket.once("error", (error) => {
      if (error.syscall === "getaddrinfo") throw error;
      end(error.code);
    });
    socket.setTimeout(30_000, () => end("no answer"));`;
  return (await world.kubectl.exec(pod, "node", "-e", script)).trim();
}
