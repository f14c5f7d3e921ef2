import { X509Certificate } from "node:crypto";
import { get } from "node:https";
import { Counter, Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { type MetricsAccess, MetricsAuthorizer } from "../../../operator/serve/metrics-access.ts";
import { serveProbes } from "../../../operator/serve/probes.ts";
import { selfSignedCertificate } from "../../../operator/serve/self-signed.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const user = { username: "prometheus", uid: "1", groups: ["g"], extra: { a: ["b"] } };

/** Returns an authorizer whose API server knows the tokens `reader` and `other`, and the reviews that it got. */
function authorizer(clock = new FakeClock()) {
  const reviews: { kind: string; spec: unknown }[] = [];
  const create = async ({ kind, spec }: KubernetesObject) => {
    reviews.push({ kind, spec });
    const { token, user: name } = spec as { token?: string; user?: string };
    const known = token === "reader" || token === "other";
    const username = token === "reader" ? user.username : "other";
    const status =
      kind === "TokenReview"
        ? { authenticated: known, ...(known && { user: { ...user, username } }) }
        : { allowed: name === user.username };
    return { status } as unknown as KubernetesObject;
  };
  const client = { create } as unknown as ClusterClient;
  return { clock, reviews, authorizer: new MetricsAuthorizer(client, clock) };
}

describe("the access to secure metrics", () => {
  it.each<[string, string | undefined, MetricsAccess]>([
    ["is allowed to an account with the right", "Bearer reader", 200],
    ["is forbidden to an account without the right", "Bearer other", 403],
    ["is refused for an unknown token", "Bearer unknown", 401],
    ["is refused without a token", undefined, 401],
    ["is refused with another scheme", "Basic reader", 401],
    ["is refused for a malformed token", "Bearer a b", 401],
  ])("%s", async (_what, authorization, expected) => {
    expect(await authorizer().authorizer.accessOf(authorization, "/metrics")).toBe(expected);
  });

  it("is decided by the API server with the identity of the token", async () => {
    const { authorizer: tested, reviews } = authorizer();
    await tested.accessOf("Bearer reader", "/metrics");
    const { username, ...identity } = user;
    expect(reviews).toEqual([
      { kind: "TokenReview", spec: { token: "reader" } },
      {
        kind: "SubjectAccessReview",
        spec: { user: username, ...identity, nonResourceAttributes: { path: "/metrics", verb: "get" } },
      },
    ]);
  });

  it("is remembered for a minute, and a refusal for ten seconds", async () => {
    const { authorizer: tested, reviews, clock } = authorizer();
    const ask = async (token: string) => {
      await tested.accessOf(`Bearer ${token}`, "/metrics");
      return reviews.splice(0).length;
    };
    expect([await ask("reader"), await ask("unknown")]).toEqual([2, 1]);
    await clock.advance(9_000);
    expect([await ask("reader"), await ask("unknown")]).toEqual([0, 0]);
    await clock.advance(2_000);
    expect([await ask("reader"), await ask("unknown")]).toEqual([0, 1]);
    await clock.advance(50_000);
    expect(await ask("reader")).toBe(2);
  });

  it("is decided for at most eight clients at a time", async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<KubernetesObject>();
    let reviews = 0;
    const create = () => {
      reviews += 1;
      return answered;
    };
    const tested = new MetricsAuthorizer({ create } as unknown as ClusterClient, new FakeClock());
    const asked = Array.from({ length: 9 }, (_, index) => tested.accessOf(`Bearer ${index}`, "/metrics"));
    expect(await asked.at(-1)).toBe(503);
    answer({ status: { authenticated: false } } as unknown as KubernetesObject);
    expect(await Promise.all(asked)).toEqual([...Array<number>(8).fill(401), 503]);
    expect(await tested.accessOf("Bearer 8", "/metrics")).toBe(401);
    expect(reviews).toBe(9);
  });
});

describe("the self-signed certificate", () => {
  it.each(["tts-operator-5d9c7b6f8-x2x4z", "a".repeat(63)])(
    "names the host %s, and is valid for years",
    (host) => {
      const nowMs = Date.parse("2026-01-01T00:00:00Z");
      const { cert } = selfSignedCertificate(host, nowMs);
      const found = new X509Certificate(cert);
      expect(found.subject).toBe(`CN=${host}`);
      expect(found.checkHost(host)).toBe(host);
      expect(found.verify(found.publicKey)).toBe(true);
      expect(Date.parse(found.validFrom)).toBe(nowMs - 86_400_000);
      expect(Date.parse(found.validTo)).toBeGreaterThan(nowMs + 9 * 365 * 86_400_000);
    },
  );

  it("has a time after 2050 in the long form", () => {
    const { cert } = selfSignedCertificate("a", Date.parse("2055-01-01T00:00:00Z"));
    expect(new Date(new X509Certificate(cert).validTo).getUTCFullYear()).toBe(2064);
  });
});

it("secure metrics are served with TLS, and only to allowed clients", async () => {
  const registry = new Registry();
  new Counter({ name: "tested_total", help: "A counter", registers: [registry] }).inc();
  const certificate = selfSignedCertificate("localhost", Date.now());
  const { authorizer: tested } = authorizer();
  const failures: unknown[] = [];
  const refusal = new Error("system:serviceaccount:system:tts-operator cannot create tokenreviews");
  const accessOf = (authorization: string | undefined, path: string) =>
    authorization === "Bearer broken" ? Promise.reject(refusal) : tested.accessOf(authorization, path);
  const secure = {
    certificate,
    authorizer: { accessOf },
    onFailure: (error: unknown) => failures.push(error),
  };
  const operator = () => undefined;
  const servers = await serveProbes({ probePort: 0, metricsPort: 0, registry, operator, secure });
  const read = (token: string) =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` };
      const options = { ca: certificate.cert, servername: "localhost", headers };
      const request = get(`https://127.0.0.1:${servers.metricsPort}/metrics`, options, async (response) => {
        let text = "";
        for await (const chunk of response) text += String(chunk);
        resolve({ status: response.statusCode, text });
      });
      request.on("error", reject);
    });
  try {
    expect(await read("reader")).toMatchObject({
      status: 200,
      text: expect.stringContaining("tested_total 1"),
    });
    expect(await read("other")).toMatchObject({
      status: 403,
      text: expect.stringContaining("no right to get"),
    });
    expect(await read("unknown")).toMatchObject({ status: 401 });
    const { status, text } = await read("broken");
    expect([status, text]).toEqual([500, expect.not.stringContaining("serviceaccount")]);
    expect(failures).toEqual([refusal]);
  } finally {
    await servers.close();
  }
});
