import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Route } from "../../../config/contract/routing.ts";
import { systemClock } from "../../../lib/clock.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import { apiRole } from "../../../operator/desired/service-account.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { ClusterAccess } from "../../../server/api/upstream/kubernetes/connection.ts";
import { createClusterDirectory } from "../../../server/api/upstream/kubernetes/directory.ts";
import type { ReplicaDirectory } from "../../../server/api/upstream/replicas.ts";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";
import { clusterRequestOrThrow } from "../../support/cluster/cluster-request.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { eventually } from "../../support/eventually.ts";
import { FaultProxy, type ProxiedRequest } from "../../support/operator/fault-proxy.ts";
import { ttsDeployment } from "../../support/operator/observed.ts";

/**
 * Tests the directory with a real API server. The directory connects as the ServiceAccount of the API pods,
 * with the role that the operator gives them, through a proxy that records the requests and can break
 * connections.
 */

const route = (service: string, more: Partial<Route> = {}): Route => ({
  pool: service,
  service: `http://${service}:8080`,
  weight: 100,
  idle: false,
  ...more,
});

let plane: ControlPlane;
let admin: ClusterClient;
let namespace: string;
let podToken: string;
let proxy: FaultProxy;
let directory: ReplicaDirectory;
let warnings: string[];

beforeAll(async () => {
  plane = await controlPlane();
  admin = await adminClient(plane.address);
});

afterAll(async () => {
  admin.close();
  await plane.stop();
});

beforeEach(async () => {
  namespace = await freshNamespace(admin, "directory");
  podToken = await tokenOfApiPods();
  proxy = await FaultProxy.start(plane.address, podToken);
  warnings = [];
  directory = follow({ url: proxy.server.origin, ca: undefined, token: () => podToken });
});

afterEach(async () => {
  directory.close();
  await proxy[Symbol.asyncDispose]();
});

function follow(access: ClusterAccess, watchSeconds = 60): ReplicaDirectory {
  const log = (_facts: object, message: string) => void warnings.push(message);
  return createClusterDirectory({
    clock: systemClock,
    access,
    namespace,
    configMap: "demo-routing",
    log: { info: log, warn: log, error: log },
    random: Math.random,
    timing: { firstBackoffMs: 20, longestBackoffMs: 100, watchSeconds },
  });
}

async function tokenOfApiPods(): Promise<string> {
  const { rules } = apiRole(ttsDeployment());
  const metadata = { name: "api", namespace };
  const rbac = "rbac.authorization.k8s.io";
  await admin.create({ apiVersion: "v1", kind: "ServiceAccount", metadata });
  await admin.create({ apiVersion: `${rbac}/v1`, kind: "Role", metadata, rules });
  await admin.create({
    apiVersion: `${rbac}/v1`,
    kind: "RoleBinding",
    metadata,
    roleRef: { apiGroup: rbac, kind: "Role", name: "api" },
    subjects: [{ kind: "ServiceAccount", name: "api", namespace }],
  });
  const { status } = await clusterRequestOrThrow<{ status: { token: string } }>(plane.address, {
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/api/token`,
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} },
  });
  return status.token;
}

async function put(manifest: KubernetesObject): Promise<void> {
  await admin.apply(manifest, { manager: "test" });
}

const putTable = (text: string) =>
  put({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "demo-routing", namespace },
    data: { "routing.json": text },
  });

const table = (routes: readonly Route[]) =>
  putTable(JSON.stringify({ version: 1, profile: "self-hosted", models: { mist: routes } }));

const putSlice = (service: string, addresses: readonly string[]) =>
  put({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `${service}-x1`, namespace, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  });

const removeSlice = (service: string) =>
  admin.remove({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    namespace,
    name: `${service}-x1`,
  });

const sees =
  (service: string, ...addresses: readonly string[]) =>
  () =>
    directory.replicas(route(service)).join() === addresses.map((one) => `http://${one}:8080`).join();

const ofSlices = ({ path }: ProxiedRequest) => path.endsWith("/endpointslices");

async function openBothWatches(): Promise<void> {
  await table([route("demo-mist")]);
  await putSlice("demo-mist", ["10.0.0.1"]);
  await eventually("the first state", sees("demo-mist", "10.0.0.1"));
  await eventually("the watches of table and EndpointSlices", () => proxy.openWatches === 2);
}

describe("the directory of a cluster", () => {
  it("is empty until the routing table exists, and then follows the table", async () => {
    expect(directory.table()).toBeUndefined();
    await eventually("a log message about the missing table", () =>
      warnings.some((text) => text.includes("demo-routing")),
    );
    await table([route("demo-mist")]);
    await eventually("the directory to read the table", () => directory.table()?.models.mist?.length === 1);
    await table([route("demo-mist", { weight: 90 }), route("demo-canary", { weight: 10 })]);
    await eventually(
      "the directory to read the changed table",
      () => directory.table()?.models.mist?.length === 2,
    );
  });

  it("follows only the endpoints of the Services in the table", async () => {
    await table([route("demo-mist")]);
    await putSlice("other", ["10.0.0.7"]);
    await putSlice("demo-mist", ["10.0.0.1"]);
    await eventually("the first replica", sees("demo-mist", "10.0.0.1"));
    await putSlice("demo-mist", ["10.0.0.1", "10.0.0.2"]);
    await eventually("the second replica", sees("demo-mist", "10.0.0.1", "10.0.0.2"));
    await removeSlice("demo-mist");
    await eventually("no replica", sees("demo-mist"));
    expect(directory.replicas(route("other"))).toEqual([]);
    expect(proxy.requests.find(ofSlices)?.query.get("labelSelector")).toBe(
      "kubernetes.io/service-name in (demo-mist)",
    );
    expect(directory.replicas(route("demo-mist", { idle: true }))).toEqual([]);
  });

  const expired = '{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}';
  it.each<[what: string, fault: () => void]>([
    ["an expired version (410)", () => proxy.sayOnWatches(expired)],
    ["a dropped connection", () => proxy.cutWatches()],
    ["an event that is not JSON", () => proxy.sayOnWatches("<html>")],
  ])("loses no change because of %s", async (_what, fault) => {
    await openBothWatches();
    // The watch does not deliver the event of this change.
    proxy.stallWatches();
    await putSlice("demo-mist", ["10.0.0.9"]);
    fault();
    await eventually("the state after the fault", sees("demo-mist", "10.0.0.9"));
  });

  it("keeps the last state while the API server is unavailable, and updates it afterwards", async () => {
    await openBothWatches();
    proxy.rule = () => ({ kind: "answer", status: 500 });
    proxy.cutWatches();
    const before = proxy.requests.length;
    await eventually("four more requests", () => proxy.requests.length > before + 3);
    expect(sees("demo-mist", "10.0.0.1")()).toBe(true);
    await putSlice("demo-mist", ["10.0.0.2"]);
    proxy.rule = () => undefined;
    await eventually("the new state", sees("demo-mist", "10.0.0.2"));
  });

  it("keeps the last valid table when the table becomes invalid, and logs the error", async () => {
    await table([route("demo-mist")]);
    await eventually("the directory to read the table", () => directory.table() !== undefined);
    await putTable('{"version":7}');
    await eventually("the log message about the invalid table", () =>
      warnings.some((text) => text.includes("the last valid routing table stays")),
    );
    expect(directory.table()?.models.mist).toHaveLength(1);
  });

  it("reads its token again for each request to the API server", async () => {
    await table([route("demo-mist")]);
    directory.close();
    const { server: url, caPem: ca } = plane.address;
    let token = "not a token";
    directory = follow({ url, ca, token: () => token });
    await eventually("the log message about the rejected watch", () =>
      warnings.some((text) => text.includes("was interrupted")),
    );
    expect(directory.table()).toBeUndefined();
    token = podToken;
    await eventually("the directory to read the table", () => directory.table()?.models.mist?.length === 1);
  });

  it("continues a watch that the API server ended from the last bookmark, without listing again", async () => {
    await table([route("demo-mist")]);
    directory.close();
    // A real API server sends a bookmark some seconds before the end of a watch.
    directory = follow({ url: proxy.server.origin, ca: undefined, token: () => podToken }, 5);
    const isOfTable = (request: ProxiedRequest) => !ofSlices(request);
    const isWatch = ({ query }: ProxiedRequest) => query.get("timeoutSeconds") === "5";
    const watches = () => proxy.requests.filter((request) => isOfTable(request) && isWatch(request));
    await eventually("the watch of the table", () => watches().length === 1);
    const [first] = watches();
    const versionOf = (request: ProxiedRequest | undefined) => Number(request?.query.get("resourceVersion"));
    let writes = 0;
    // Each write changes the resource version but not the table. A watch that ended before its bookmark
    // continues from its start, so the test writes until a watch starts from a later version.
    await eventually("a watch that continues from a bookmark", async () => {
      const data = { write: String(writes++) };
      await put({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "other", namespace }, data });
      return watches().some((request) => versionOf(request) > versionOf(first));
    });
    const since = proxy.requests.slice(proxy.requests.indexOf(first as ProxiedRequest));
    expect(since.filter(isOfTable).every(isWatch)).toBe(true);
  });
});
