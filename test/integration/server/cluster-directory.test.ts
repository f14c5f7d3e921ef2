import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Route } from "../../../config/contract/routing.ts";
import { createClusterDirectory } from "../../../server/api/kubernetes/directory.ts";
import type { Directory } from "../../../server/api/replicas.ts";
import { type ApiServerDouble, startApiServerDouble } from "../../support/api-server-double.ts";
import { eventually } from "../../support/eventually.ts";

const route = (service: string, more: Partial<Route> = {}): Route => ({
  pool: service,
  service: `http://${service}:8080`,
  weight: 100,
  idle: false,
  ...more,
});

let server: ApiServerDouble;
let directory: Directory;
let token: string;
const warnings: string[] = [];

function table(routes: readonly Route[]): void {
  const routing = JSON.stringify({ version: 1, profile: "self-hosted", models: { mist: routes } });
  server.put("configmaps", { metadata: { name: "demo-routing" }, data: { "routing.json": routing } });
}

function slice(service: string, addresses: readonly string[], more: object = {}) {
  return {
    metadata: { name: `${service}-x1`, labels: { "kubernetes.io/service-name": service } },
    ports: [{ name: "http", port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true, ...more } })),
  };
}

const sees = (service: string, urls: readonly string[]) => () =>
  JSON.stringify(directory.replicas(route(service))) === JSON.stringify(urls);

beforeEach(async () => {
  server = await startApiServerDouble();
  token = "first";
  warnings.length = 0;
  const log = (_facts: object, message: string) => void warnings.push(message);
  directory = createClusterDirectory({
    access: { url: server.url, ca: undefined, token: () => token },
    namespace: "speech",
    configMap: "demo-routing",
    log: { info: log, warn: log, error: log },
    random: Math.random,
    timing: { firstBackoffMs: 20, longestBackoffMs: 100, watchSeconds: 1 },
  });
});

afterEach(async () => {
  directory.close();
  await server.close();
});

describe("the directory of a cluster", () => {
  it("knows nothing until the table is there, and then follows it within 2 seconds", async () => {
    expect(directory.table()).toBeUndefined();
    await eventually("it says that it waits", () => warnings.some((text) => text.includes("demo-routing")));
    table([route("demo-mist")]);
    await eventually("the table is read", () => directory.table()?.models.mist?.length === 1);
    table([route("demo-mist", { weight: 90 }), route("demo-canary", { weight: 10 })]);
    await eventually("the change is seen", () => directory.table()?.models.mist?.length === 2);
  });

  it("follows the endpoints of just the services in the table", async () => {
    table([route("demo-mist")]);
    server.put("endpointslices", slice("demo-mist", ["10.0.0.1"]));
    await eventually("the first replica", sees("demo-mist", ["http://10.0.0.1:8080"]));
    server.put("endpointslices", slice("demo-mist", ["10.0.0.1", "10.0.0.2"]));
    await eventually("the second", sees("demo-mist", ["http://10.0.0.1:8080", "http://10.0.0.2:8080"]));
    server.remove("endpointslices", "demo-mist-x1");
    await eventually("none", sees("demo-mist", []));
    const asked = server.requests.find((request) => request.includes("endpointslices")) ?? "";
    expect(new URL(asked, "http://x").searchParams.get("labelSelector")).toBe(
      "kubernetes.io/service-name in (demo-mist)",
    );
    expect(directory.replicas(route("demo-mist", { idle: true }))).toEqual([]);
  });

  it.each<[what: string, fault: (server: ApiServerDouble) => void]>([
    [
      "an expired version (410)",
      (s) => s.say('{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}'),
    ],
    ["a dropped connection", (s) => s.dropWatches()],
    ["an event that is not JSON", (s) => s.say("<html>")],
  ])("loses no change to %s", async (_what, fault) => {
    table([route("demo-mist")]);
    server.put("endpointslices", slice("demo-mist", ["10.0.0.1"]));
    await eventually("the first state", sees("demo-mist", ["http://10.0.0.1:8080"]));
    server.putSilently("endpointslices", slice("demo-mist", ["10.0.0.9"]));
    fault(server);
    await eventually("the state after the fault", sees("demo-mist", ["http://10.0.0.9:8080"]));
  });

  it("keeps the last good state while the API server is away, and catches up when it is back", async () => {
    table([route("demo-mist")]);
    server.put("endpointslices", slice("demo-mist", ["10.0.0.1"]));
    await eventually("the first state", sees("demo-mist", ["http://10.0.0.1:8080"]));
    server.fail = 500;
    server.dropWatches();
    const before = server.requests.length;
    await eventually("it tries again and again", () => server.requests.length > before + 3);
    expect(sees("demo-mist", ["http://10.0.0.1:8080"])()).toBe(true);
    server.putSilently("endpointslices", slice("demo-mist", ["10.0.0.2"]));
    server.fail = undefined;
    await eventually("the new state", sees("demo-mist", ["http://10.0.0.2:8080"]));
  });

  it("keeps the last good table when a wrong one comes, and says so", async () => {
    table([route("demo-mist")]);
    await eventually("the table is read", () => directory.table() !== undefined);
    server.put("configmaps", {
      metadata: { name: "demo-routing" },
      data: { "routing.json": '{"version":7}' },
    });
    await eventually("the complaint", () =>
      warnings.some((text) => text.includes("the last good one stays")),
    );
    expect(directory.table()?.models.mist).toHaveLength(1);
  });

  it("sends the token as it is now", async () => {
    table([route("demo-mist")]);
    await eventually("the first token was sent", () => server.authorizations.has("Bearer first"));
    token = "second";
    server.dropWatches();
    await eventually("the renewed token was sent", () => server.authorizations.has("Bearer second"));
  });

  it("goes on from the last bookmark when the server ends a watch in time, without listing again", async () => {
    table([route("demo-mist")]);
    await eventually(
      "both are watched",
      () => server.requests.filter((r) => r.includes("watch=1")).length >= 2,
    );
    const lists = server.requests.filter((request) => !request.includes("watch=1")).length;
    server.say(
      JSON.stringify({ type: "BOOKMARK", object: { metadata: { name: "", resourceVersion: "4711" } } }),
    );
    server.endWatches();
    await eventually("a watch from the bookmark", () =>
      server.requests.some((request) => request.includes("resourceVersion=4711")),
    );
    expect(server.requests.filter((request) => !request.includes("watch=1"))).toHaveLength(lists);
  });
});
