import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { collectorSidecar } from "../../../operator/desired/pods/telemetry.ts";
import type { V1Container } from "../../../operator/facts/kubernetes-object.ts";
import { selfSigned } from "../../support/certificate.ts";
import { CollectorPod } from "../../support/collector.ts";
import { eventuallyPasses } from "../../support/eventually.ts";
import { ttsModelPool } from "../../support/operator/observed.ts";

/**
 * Runs a real collector with the configuration that the operator renders, and a backend that requires
 * authentication.
 */

const secret = "s3cret-of-the-backend";

function sidecar(exporter: object, auth?: object): V1Container {
  const collector = { enabled: true, scrapeIntervalSeconds: 5, exporter, ...(auth && { auth }) };
  const telemetry = { resourceAttributes: { team: "voice $1" }, collector };
  const env = [{ name: "SVC_TTS_ARCANA_GENERATOR", value: "vllm" }];
  const [container] = collectorSidecar(ttsModelPool({ kind: "arcana", env, telemetry }).spec);
  if (container === undefined) throw new Error("the operator rendered no collector container");
  return container;
}

async function bodyOf(request: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a backend that receives OTLP over HTTP from clients with the header, and issues OAuth 2 tokens. */
async function backend(header: string, value: string) {
  const received: string[] = [];
  let refused = 0;
  const tokenRequests: { authorization: string | undefined; body: string }[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = await bodyOf(request);
    if (request.url === "/token") {
      tokenRequests.push({ authorization: request.headers.authorization, body: body.toString() });
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ access_token: secret, token_type: "Bearer", expires_in: 3600 }));
      return;
    }
    if (request.headers[header] !== value) {
      refused += 1;
      response.writeHead(401).end();
      return;
    }
    received.push(gunzipSync(body).toString("latin1"));
    response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  });
  const url = await listening(server);
  return {
    url,
    received,
    tokenRequests,
    refused: () => refused,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Sends a metric to the collector as arcana does. */
async function push(port: number, name = "svc.engine.initial_latency"): Promise<number> {
  const dataPoints = [{ asDouble: 0.12, timeUnixNano: `${Date.now()}000000` }];
  const metrics = [{ name, unit: "s", gauge: { dataPoints } }];
  const answer = await fetch(`http://127.0.0.1:${port}/v1/metrics`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ resourceMetrics: [{ resource: {}, scopeMetrics: [{ metrics }] }] }),
  });
  return answer.status;
}

const until = (assertion: () => void) => eventuallyPasses(assertion);

const credentials: [
  string,
  object,
  Record<string, Record<string, string>>,
  Record<string, string>,
  [string, string],
][] = [
  [
    "a bearer token",
    { bearer: { secretRef: { name: "s" } } },
    { auth: { token: secret } },
    {},
    ["authorization", `Bearer ${secret}`],
  ],
  [
    "a user name and a password",
    { basic: { secretRef: { name: "s" } } },
    {},
    { COLLECTOR_USERNAME: "otlp", COLLECTOR_PASSWORD: secret },
    ["authorization", `Basic ${Buffer.from(`otlp:${secret}`).toString("base64")}`],
  ],
  [
    "a header",
    { headers: [{ name: "api-key", secretRef: { name: "s", key: "k" } }] },
    {},
    { COLLECTOR_HEADER_0: secret },
    ["api-key", secret],
  ],
];

describe("the collector sidecar", () => {
  it.each(credentials)(
    "sends arcana's metrics to a backend that requires %s",
    async (_what, auth, files, values, header) => {
      await using to = await backend(...header);
      const container = sidecar({ protocol: "http/protobuf", endpoint: to.url }, auth);
      await using pod = await CollectorPod.prepare(container, files);
      expect(JSON.stringify(container)).not.toContain(secret);
      await pod.validate(values);
      await pod.start(values);
      expect(await push(pod.ports.http)).toBe(200);
      await until(() => expect(to.received.join()).toContain("svc.engine.initial_latency"));
      expect(to.refused()).toBe(0);
      const text = to.received.join();
      for (const attribute of ["k8s.pod.name", "demo-arcana-0", "k8s.namespace.name", "svc.pool", "voice $1"])
        expect(text).toContain(attribute);
      expect(pod.log()).not.toContain(secret);
    },
  );

  it("requests an OAuth 2 token with client credentials, and sends the token to the backend", async () => {
    await using to = await backend("authorization", `Bearer ${secret}`);
    const auth = { oauth2: { tokenUrl: `${to.url}/token`, scopes: ["metrics"], secretRef: { name: "s" } } };
    const container = sidecar({ protocol: "http/protobuf", endpoint: to.url }, auth);
    await using pod = await CollectorPod.prepare(container, {});
    const values = { COLLECTOR_CLIENT_ID: "tts", COLLECTOR_CLIENT_SECRET: "pw" };
    await pod.validate(values);
    await pod.start(values);
    expect(await push(pod.ports.http)).toBe(200);
    await until(() => expect(to.received.join(), pod.log()).toContain("svc.engine.initial_latency"));
    const [{ authorization, body } = { authorization: "", body: "" }] = to.tokenRequests;
    expect(body).toContain("scope=metrics");
    expect(`${Buffer.from(String(authorization).replace("Basic ", ""), "base64")} ${body}`).toMatch(
      /tts.*pw/,
    );
  });

  it("scrapes the model and vLLM on their fixed ports", async () => {
    await using to = await backend("api-key", secret);
    const auth = { headers: [{ name: "api-key", secretRef: { name: "s", key: "k" } }] };
    const container = sidecar({ protocol: "http/protobuf", endpoint: to.url }, auth);
    await using pod = await CollectorPod.prepare(container, {});
    const exposition = (name: string) =>
      createServer((_request, response) => {
        response.setHeader("content-type", "text/plain; version=0.0.4");
        response.end(`# TYPE ${name} gauge\n${name} 1\n`);
      });
    const [model, vllm] = [exposition("svc_tts_model_streams"), exposition("vllm_num_requests_running")];
    await once(model.listen(pod.ports.model, "127.0.0.1"), "listening");
    await once(vllm.listen(pod.ports.vllm, "127.0.0.1"), "listening");
    try {
      await pod.start({ COLLECTOR_HEADER_0: secret });
      await until(() => expect(to.received.join()).toContain("svc_tts_model_streams"));
      await until(() => expect(to.received.join()).toContain("vllm_num_requests_running"));
      expect(to.received.join()).toContain("svc-tts-arcana");
    } finally {
      for (const server of [model, vllm]) {
        server.close();
        server.closeAllConnections();
      }
    }
  });

  it("sends its remaining data when it stops", async () => {
    await using to = await backend("authorization", `Bearer ${secret}`);
    const container = sidecar(
      { protocol: "http/protobuf", endpoint: to.url },
      { bearer: { secretRef: { name: "s" } } },
    );
    await using pod = await CollectorPod.prepare(container, { auth: { token: secret } });
    await pod.start();
    await push(pod.ports.http, "svc.engine.invocation_request");
    expect(await pod.stop()).toBe(0);
    expect(to.received.join()).toContain("svc.engine.invocation_request");
  });

  it.each([
    ["bearer", { bearer: { secretRef: { name: "s" } } }],
    ["basic", { basic: { secretRef: { name: "s" } } }],
    ["oauth2", { oauth2: { tokenUrl: "http://127.0.0.1:1/token", secretRef: { name: "s" } } }],
    ["headers", { headers: [{ name: "api-key", secretRef: { name: "s", key: "k" } }] }],
  ])("keeps running without its %s credentials, and accepts the data of the model", async (_what, auth) => {
    await using to = await backend("authorization", "an unknown token");
    // The volume of a missing Secret is an empty folder.
    await using pod = await CollectorPod.prepare(
      sidecar({ protocol: "http/protobuf", endpoint: to.url }, auth),
      { auth: {} },
    );
    await pod.start();
    expect(await push(pod.ports.http)).toBe(200);
    expect(await pod.healthy()).toBe(true);
  });

  it("sends metrics with a token by gRPC over TLS to a backend with a configured certificate authority", async () => {
    const { key, cert } = await selfSigned();
    const received: string[] = [];
    const server = createSecureServer({ key, cert });
    server.on("stream", async (stream, headers) => {
      const body = await bodyOf(stream);
      const known = headers.authorization === `Bearer ${secret}`;
      // A gRPC message consists of a compression flag of one byte, a length of four bytes, and the content.
      if (known)
        received.push(
          `${headers[":path"]} ${(body[0] === 1 ? gunzipSync(body.subarray(5)) : body).toString("latin1")}`,
        );
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": known ? "0" : "16" }));
      stream.end(Buffer.alloc(5));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const exporter = { protocol: "grpc", endpoint, caSecretRef: { name: "ca" } };
    try {
      await using pod = await CollectorPod.prepare(
        sidecar(exporter, { bearer: { secretRef: { name: "s" } } }),
        {
          auth: { token: secret },
          ca: { "ca.crt": cert.toString() },
        },
      );
      await pod.validate();
      await pod.start();
      await push(pod.ports.http);
      await until(() => expect(received.join()).toContain("svc.engine.initial_latency"));
      expect(received[0]).toContain("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export");
    } finally {
      server.close();
    }
  });
});
