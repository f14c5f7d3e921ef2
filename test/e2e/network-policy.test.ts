/** The NetworkPolicies of a `TtsDeployment`, tried with real connections: what they promise is let through, and the rest is refused. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { labels } from "../../config/contract/names.ts";
import { Deployed } from "../support/deployed.ts";
import { type LivePolicy, policyRules } from "../support/policy-rules.ts";
import { type KubeObject, run } from "../support/real-cluster.ts";
import { arcana, World } from "../support/world.ts";

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
const addresses = { api: "", model: "", license: "", backend: "" };

beforeAll(async () => {
  if (!cluster.isLocal) throw new Error("the rules are given to the local cluster's node: unset KUBECONFIG");
  await Promise.all([world.open(), elsewhere.open()]);
  const license = await world.serve("license", licensePort, answering(licensePort));
  const backend = await world.serve("backend", backendPort, answering(backendPort));
  Object.assign(addresses, {
    license: new URL(license.url).hostname,
    backend: new URL(backend.url).hostname,
  });
  const cidr = `${await ipOf("license")}/32`;
  await world.deploy(name, {
    models: [arcana()],
    networkPolicy: { enabled: true, licenseEgress: [{ cidr, port: licensePort }] },
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
  Promise.all([world.close(), elsewhere.close(), nft(`table ip ${table}\ndelete table ip ${table}\n`)]),
);

const promised: [string, () => Place, () => [string, number]][] = [
  ["any pod reaches the API", () => client, () => [addresses.api, 8000]],
  ["the API reaches the model", () => api, () => [addresses.model, 8080]],
  ["the API reaches the license server", () => api, () => [addresses.license, licensePort]],
  ["the API reaches the API server", () => api, () => ["kubernetes.default.svc", 443]],
  ["the model reaches the telemetry endpoint", () => model, () => [addresses.backend, backendPort]],
  ["a pod that no policy selects reaches another", () => client, () => [addresses.license, licensePort]],
];
const refused: [string, () => Place, () => [string, number]][] = [
  ["a pod of the namespace to the model", () => client, () => [addresses.model, 8080]],
  ["an API pod's twin of another namespace to the model", () => twin, () => [addresses.model, 8080]],
  ["the API to what it was not given", () => api, () => [addresses.backend, backendPort]],
  ["the model to the license server", () => model, () => [addresses.license, licensePort]],
  ["the model to the API", () => model, () => [addresses.api, 8000]],
];

describe("without a network that enforces the policies", () => {
  it.each(refused)("%s is let through", async (_what, from, to) => {
    expect(await connect(from(), ...to())).toBe("connected");
  });
});

describe("on a network that enforces the policies", () => {
  beforeAll(async () => nft(await rules()));

  it.each(promised)("%s", async (_what, from, to) => {
    expect(await connect(from(), ...to())).toBe("connected");
  });

  it.each(refused)("%s is refused", async (_what, from, to) => {
    expect(await connect(from(), ...to())).toBe("EHOSTUNREACH");
  });

  it("speech goes the whole way, from a name to the model and back", async () => {
    const body = { text: "Nobody else hears this.", speaker: "luna", modelId: "arcana" };
    expect(await world.speak(name, body)).toMatchObject({ status: 200 });
    await world.condition(name, "Ready", "True");
  });
});

/** The policies of the cluster as it is now, for the pods of this test. */
async function rules(): Promise<string> {
  const policies = (await world.kubectl.list("networkpolicies")) as KubeObject[] & LivePolicy[];
  expect(policies.map(({ metadata }) => metadata.labels?.[labels.deployment])).toEqual([name, name]);
  const pods = await Promise.all([world, elsewhere].map(({ kubectl }) => kubectl.list("pods")));
  const namespaces = await world.kubectl.list("namespaces");
  return policyRules(table, {
    policies,
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

/** Opens a TCP connection from a pod, which resolves the name. @returns `connected`, or the code of the error */
async function connect({ world, pod }: Place, host: string, port: number): Promise<string> {
  const script = `
    const socket = require("node:net").connect(${port}, ${JSON.stringify(host)});
    socket.once("connect", () => { console.log("connected"); socket.destroy(); });
    socket.once("error", (error) => console.log(error.code));`;
  return (await world.kubectl.exec(pod, "node", "-e", script)).trim();
}
