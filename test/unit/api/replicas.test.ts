import { describe, expect, it } from "vitest";
import type { Route } from "../../../config/contract/routing.ts";
import { type EndpointSlice, replicaUrls } from "../../../server/api/upstream/kubernetes/endpoints.ts";
import { createReplicaSelector, type ReplicaDirectory } from "../../../server/api/upstream/replicas.ts";

const route = (pool: string, weight = 100, idle = false): Route => ({
  pool,
  service: `http://${pool}:1`,
  weight,
  idle,
});

function chooser(
  routes: readonly Route[],
  replicas: Record<string, readonly string[]>,
  random = () => 0,
  now = () => 0,
) {
  const directory: ReplicaDirectory = {
    table: () => ({ version: 1, profile: "self-hosted", models: { mist: routes } }),
    replicas: ({ pool }) => replicas[pool] ?? [],
    onChange: () => undefined,
    close: () => undefined,
  };
  return createReplicaSelector(directory, random, now);
}

describe("the replica selection", () => {
  it("selects the replica with the fewest streams, and counts the end of a stream once", () => {
    const replicas = chooser([route("a")], { a: ["http://1", "http://2"] });
    const first = { url: "http://1", pool: "a" };
    const end = replicas.occupy(first);
    expect(replicas.choose("mist", new Set())?.url).toBe("http://2");
    replicas.occupy({ url: "http://2", pool: "a" });
    replicas.occupy({ url: "http://2", pool: "a" });
    expect(replicas.choose("mist", new Set())?.url).toBe("http://1");
    end();
    end();
    expect(replicas.choose("mist", new Set())?.url).toBe("http://1");
  });

  it("selects pools by weight, but no pool with weight 0 or without replicas", () => {
    let draw = 0;
    const replicas = chooser(
      [route("a", 90), route("b", 10), route("zero", 0), route("empty", 100)],
      { a: ["http://a"], b: ["http://b"], zero: ["http://zero"] },
      () => draw,
    );
    const urls = Array.from({ length: 100 }, (_, i) => {
      draw = i / 100;
      return replicas.choose("mist", new Set())?.url;
    });
    expect(urls.filter((url) => url === "http://a")).toHaveLength(90);
    expect(urls.filter((url) => url === "http://b")).toHaveLength(10);
  });

  it("skips replicas that the request has tried, and returns undefined if it has tried all of them", () => {
    const replicas = chooser([route("a"), route("b")], { a: ["http://a"], b: ["http://b"] });
    expect(replicas.choose("mist", new Set(["http://a"]))?.url).toBe("http://b");
    expect(replicas.choose("mist", new Set(["http://a", "http://b"]))).toBeUndefined();
    expect(replicas.choose("arcana", new Set())).toBeUndefined();
  });
});

describe("the load of a replica", () => {
  const [one, two] = [
    { url: "http://1", pool: "a" },
    { url: "http://2", pool: "a" },
  ];
  let nowMs = 0;
  const twoReplicas = () => {
    nowMs = 0;
    return chooser(
      [route("a")],
      { a: [one.url, two.url] },
      () => 0,
      () => nowMs,
    );
  };
  const chosen = (replicas: ReturnType<typeof chooser>) => replicas.choose("mist", new Set())?.url;

  it("is the reported number of streams for one second, including streams of other API pods", () => {
    const replicas = twoReplicas();
    replicas.occupy(two);
    replicas.reported(one, { streams: 4, capacity: 4 });
    expect(chosen(replicas)).toBe(two.url);
    nowMs = 1000;
    expect(chosen(replicas)).toBe(two.url);
    nowMs = 1001;
    expect(chosen(replicas)).toBe(one.url);
  });

  it("includes streams that started after the report, and excludes streams that ended after it", () => {
    const replicas = twoReplicas();
    const end = replicas.occupy(one);
    replicas.reported(one, { streams: 3, capacity: 4 });
    replicas.reported(two, { streams: 3, capacity: 4 });
    replicas.occupy(two);
    expect(chosen(replicas)).toBe(one.url);
    replicas.occupy(one);
    replicas.occupy(one);
    expect(chosen(replicas)).toBe(two.url);
    end();
    end();
    expect(chosen(replicas)).toBe(one.url);
  });

  it("counts a replica that failed as the last choice for five seconds", () => {
    const replicas = twoReplicas();
    replicas.occupy(two);
    replicas.failed(one);
    expect(chosen(replicas)).toBe(two.url);
    expect(replicas.choose("mist", new Set([two.url]))?.url).toBe(one.url);
    replicas.failed(two);
    expect(chosen(replicas)).toBe(one.url);
    nowMs = 4999;
    replicas.failed(two);
    expect(chosen(replicas)).toBe(one.url);
    nowMs = 5000;
    expect(chosen(replicas)).toBe(one.url);
    replicas.occupy(one);
    replicas.occupy(one);
    expect(chosen(replicas)).toBe(one.url);
    nowMs = 9999;
    expect(chosen(replicas)).toBe(two.url);
  });
});

describe("replicaUrls", () => {
  const slice = (...conditions: object[]): EndpointSlice => ({
    metadata: { name: "s" },
    ports: [
      { name: "metrics", port: 9 },
      { name: "http", port: 8080 },
    ],
    endpoints: conditions.map((condition, i) => ({ addresses: [`10.0.0.${i}`], conditions: condition })),
  });
  it.each<[endpoints: string, slices: EndpointSlice[], urls: string[]]>([
    ["ready endpoints", [slice({ ready: true }, { ready: false })], ["http://10.0.0.0:8080"]],
    ["endpoints without conditions", [slice({})], ["http://10.0.0.0:8080"]],
    [
      "no terminating endpoint if another endpoint is ready",
      [slice({ ready: false, serving: true, terminating: true }, { ready: true })],
      ["http://10.0.0.1:8080"],
    ],
    [
      "terminating endpoints that still serve if no endpoint is ready",
      [slice({ ready: false, serving: true, terminating: true }, { ready: false })],
      ["http://10.0.0.0:8080"],
    ],
    ["no endpoint that does not serve", [slice({ ready: false, serving: false, terminating: true })], []],
    [
      "the same address of two slices once",
      [slice({ ready: true }), slice({ ready: true })],
      ["http://10.0.0.0:8080"],
    ],
    [
      "IPv6 addresses in brackets",
      [{ ...slice(), endpoints: [{ addresses: ["fd00::1"] }] }],
      ["http://[fd00::1]:8080"],
    ],
    ["no endpoint of an empty slice", [{ metadata: { name: "s" }, endpoints: null, ports: null }], []],
  ])("returns %s", (_endpoints, slices, urls) => {
    expect(replicaUrls(slices)).toEqual(urls);
  });
});
