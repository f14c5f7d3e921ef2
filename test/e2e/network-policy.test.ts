/**
 * Tests the NetworkPolicies of a `TtsDeployment` with real connections: the documented ones are allowed, and all others are blocked.
 * The network of the cluster of `KUBECONFIG` enforces them. The network of the local cluster does not, so its node gets
 * equivalent rules.
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

interface Place {
  readonly world: World;
  readonly pod: string;
}
const client: Place = { world, pod: "client" };
/** A pod with the labels of an API pod, in another namespace. */
const twin: Place = { world: elsewhere, pod: "client" };
let api: Place;
let model: Place;
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

type Attempt = [string, () => Place, () => [string, number]];
const toLicense: Attempt = [
  "the API reaches the license server",
  () => api,
  () => [addresses.license, licensePort],
];
const promised: Attempt[] = [
  ["any pod reaches the API", () => client, () => [addresses.api, 8000]],
  ["the API reaches the model", () => api, () => [addresses.model, 8080]],
  // in some networks, such as Cilium, a CIDR block matches only addresses outside the cluster
  ...(cluster.isLocal ? [toLicense] : []),
  ["the API reaches the API server", () => api, () => ["kubernetes.default.svc", 443]],
  ["the model reaches the telemetry endpoint", () => model, () => [addresses.backend, backendPort]],
  ["a pod that no policy selects reaches another", () => client, () => [addresses.license, licensePort]],
];
const refused: Attempt[] = [
  ["a pod of the namespace to the model", () => client, () => [addresses.model, 8080]],
  ["an API pod's twin of another namespace to the model", () => twin, () => [addresses.model, 8080]],
  ["the API to what it was not given", () => api, () => [addresses.backend, backendPort]],
  ["the model to the license server", () => model, () => [addresses.license, licensePort]],
  ["the model to the API", () => model, () => [addresses.api, 8000]],
];

/** The rules of the node reject at once. Other networks may drop packets. */
const refusal = cluster.isLocal ? /^EHOSTUNREACH$/ : /^(E[A-Z]+|no answer)$/;

describe("without NetworkPolicies", () => {
  it.each(refused)("%s is let through", async (_what, from, to) => {
    expect(await connect(from(), ...to())).toBe("connected");
  });
});

describe("with enforced NetworkPolicies", () => {
  beforeAll(async () => {
    const pods = await deployed.allPods();
    await deployed.patch({ networkPolicy: { enabled: true, licenseEgress } });
    await eventually(
      "a NetworkPolicy each for API pods and model pods",
      async () => (await policies()).length === 2,
    );
    expect(await deployed.allPods(), "no pod is replaced for them").toEqual(pods);
    if (cluster.isLocal) await nft(await rules());
  });

  it.each(refused)("%s is refused", async (_what, from, to) => {
    await eventually(
      "the cluster's network to refuse the connection (does it enforce NetworkPolicy?)",
      async () => refusal.test(await connect(from(), ...to())),
    );
  });

  it.each(promised)("%s", async (_what, from, to) => {
    expect(await connect(from(), ...to())).toBe("connected");
  });

  it("the whole path of a request works, from DNS to the model", async () => {
    const body = { text: "Only this pod may ask for this.", speaker: "luna", modelId: "arcana" };
    expect(await world.speak(name, body)).toMatchObject({ status: 200 });
    await world.condition(name, "Ready", "True");
  });
});

async function policies(): Promise<LivePolicy[]> {
  const selector = `${labels.deployment}=${name}`;
  return (await world.kubectl.list("networkpolicies", selector)) as KubeObject[] & LivePolicy[];
}

/** The current policies of the cluster, for the pods of this test and those of DNS. */
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
  if (ran.code !== 0) throw new Error(`the rules were not accepted: ${ran.stderr}\n${text}`);
}

async function ipOf(pod: string): Promise<string> {
  const found = await world.kubectl.get("pod", pod);
  return found?.status.podIP as string;
}

/**
 * Opens a TCP connection from a pod, which resolves the name.
 * @returns `connected`, the code of the error, or `no answer` if the packets are dropped
 */
async function connect({ world, pod }: Place, host: string, port: number): Promise<string> {
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
