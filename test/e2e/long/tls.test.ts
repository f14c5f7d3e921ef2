/**
 * Tests TLS of the API pods with WebSockets: a client that trusts only the new certificate authority connects after the
 * certificate is renewed. No pod restarts, and a socket that was opened before continues to speak.
 */
import { randomUUID, X509Certificate } from "node:crypto";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type RawData, WebSocket } from "ws";
import { ports } from "../../../config/contract/names.ts";
import { type Certificate, selfSigned } from "../../support/certificate.ts";
import { Deployed } from "../../support/cluster/deployed.ts";
import { mist, World } from "../../support/cluster/world.ts";
import { eventually } from "../../support/eventually.ts";

const cluster = inject("cluster");
const name = "secure";
const world = new World(cluster, "tls");
const { kubectl } = world;
const deployed = new Deployed(world, name);
const host = `${name}-api.${world.namespace}.svc`;
const secretName = "tts-tls";
let first: Certificate;

beforeAll(async () => {
  first = await selfSigned(`DNS:${host}`);
  await world.open();
  await putCertificate(first);
  const keys = { secretRef: { name: "tts-keys" } };
  await world.deploy(name, {
    api: { replicas: 2, keys, tls: { secretName } },
    models: [mist()],
  });
});
afterAll(() => world.close());

async function putCertificate({ key, cert }: Certificate): Promise<void> {
  await kubectl.apply({
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/tls",
    metadata: { name: secretName },
    stringData: { "tls.crt": cert.toString(), "tls.key": key.toString() },
  });
}

/** Returns the addresses of the API pods. The machine of the test routes to pods of the local cluster. */
async function podAddresses(): Promise<string[]> {
  return (await deployed.apiPods()).map(({ status }) => status.podIP as string);
}

/** Returns the fingerprint of the certificate with which a pod responds to a new connection. */
function fingerprintAt(address: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const to = { host: address, port: ports.apiTls, servername: host, rejectUnauthorized: false };
    const socket = connect(to, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? "");
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

/** Opens a WebSocket through the Service, with one certificate authority. Node resolves no names of the cluster. */
async function openSocket({ cert }: Certificate): Promise<WebSocket> {
  const service = await kubectl.get("service", `${name}-api`);
  const query = new URLSearchParams({ speaker: "alan", modelId: "mist", audioFormat: "pcm" });
  const headers = { authorization: world.authorization, host };
  // The types of ws lack the option `servername` of node:tls, with which the client checks the certificate.
  const options = { ca: cert, servername: host, headers };
  const socket = new WebSocket(`wss://${service?.spec.clusterIP}/v1/ws3?${query}`, options);
  const opened = Promise.withResolvers<WebSocket>();
  socket.once("open", () => opened.resolve(socket));
  socket.once("error", opened.reject);
  return opened.promise;
}

/** Sends a text, and returns the number of bytes of its audio. */
function say(socket: WebSocket, text: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const contextId = randomUUID();
  let bytes = 0;
  const onMessage = (data: RawData) => {
    const event = JSON.parse(String(data)) as { type: string; data?: string };
    if (event.type === "chunk") bytes += Buffer.from(event.data ?? "", "base64").length;
    if (event.type === "error") reject(new Error(String(data)));
    if (event.type !== "done") return;
    socket.off("message", onMessage);
    resolve(bytes);
  };
  socket.on("message", onMessage);
  socket.once("close", (code) => reject(new Error(`the socket was closed with ${code}`)));
  socket.send(JSON.stringify({ text, contextId }));
  socket.send(JSON.stringify({ operation: "flush", contextId }));
  return promise;
}

const fingerprintOf = ({ cert }: Certificate) => new X509Certificate(cert).fingerprint256;

describe("TLS of the API pods", () => {
  it("uses a renewed certificate without a restart, and an open socket continues to speak", async () => {
    const before = await deployed.allPods();
    const agent = await openSocket(first);
    expect(await say(agent, "The first certificate is valid.")).toBeGreaterThan(10_000);
    const second = await selfSigned(`DNS:${host}`);
    const renewedAtMs = performance.now();
    await putCertificate(second);
    for (const address of await podAddresses()) {
      await eventually(
        `the renewed certificate at ${address}`,
        async () => (await fingerprintAt(address)) === fingerprintOf(second),
        { limitMs: 240_000 },
      );
      const seconds = ((performance.now() - renewedAtMs) / 1000).toFixed(1);
      console.info(`${address} uses the renewed certificate ${seconds} s after the change of the Secret`);
    }
    expect(await say(agent, "The open socket continues.")).toBeGreaterThan(10_000);
    agent.close();
    await expect(openSocket(first)).rejects.toThrow(/certificate/);
    const later = await openSocket(second);
    expect(await say(later, "The second certificate is valid.")).toBeGreaterThan(10_000);
    later.close();
    expect(await deployed.allPods()).toEqual(before);
    expect(await world.restarts(name)).toEqual([]);
  });
});
