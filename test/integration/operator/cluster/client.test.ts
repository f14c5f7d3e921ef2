/**
 * Tests how the client handles responses and missing responses, with a real API server behind a proxy that
 * simulates faults.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { ApiError } from "../../../../operator/cluster/api-error.ts";
import { ClusterClient } from "../../../../operator/cluster/client.ts";
import { connect } from "../../../../operator/cluster/connect.ts";
import type { KubernetesObject } from "../../../../operator/facts/kubernetes-object.ts";
import { selfSigned } from "../../../support/certificate.ts";
import { adminClient, freshNamespace } from "../../../support/cluster/cluster-namespace.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { type Fault, FaultProxy } from "../../../support/operator/fault-proxy.ts";

let admin: ClusterClient;
let namespace: string;
let proxy: FaultProxy;
let client: ClusterClient;

beforeAll(async () => {
  admin = await adminClient(inject("controlPlane"));
  namespace = await freshNamespace(admin, "client");
});

afterAll(() => admin.close());

beforeEach(async () => {
  proxy = await FaultProxy.start(inject("controlPlane"));
  client = new ClusterClient(proxy.connection(), { timeoutMs: 60_000, random: () => 0 });
});

afterEach(async () => {
  client.close();
  await proxy[Symbol.asyncDispose]();
});

const configMap = (name: string, data: Record<string, string> = {}): KubernetesObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace },
  data,
});
const refTo = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", namespace, name });

/** Makes the proxy apply these faults to the first requests. All further requests reach the API server. */
function first(...faults: Fault[]): void {
  let turn = 0;
  proxy.rule = () => faults[turn++];
}

/** Creates a client that waits on a fake clock, which only the test moves. */
function onFakeClock(): { clock: FakeClock; client: ClusterClient } {
  const clock = new FakeClock();
  return { clock, client: new ClusterClient(proxy.connection(), { clock, random: () => 0 }) };
}

/** Waits until the client pauses for the time, which includes a backoff of 50 ms. */
const waits = (clock: FakeClock, pauseMs: number) =>
  eventually(`a pause of ${pauseMs} ms`, () => clock.nextDueMs === clock.monotonicMs() + pauseMs);

async function refusal(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof ApiError)) throw new Error("expected an ApiError", { cause: error });
  return error;
}

describe("reading and writing", () => {
  test("the client applies, reads, lists and removes objects, and listed objects have their kind", async () => {
    await client.apply(configMap("plain", { a: "1" }));
    expect((await client.get(refTo("plain")))?.data).toEqual({ a: "1" });
    const listed = await client.list("ConfigMap", { namespace, fieldSelector: "metadata.name=plain" });
    expect(listed.map(({ apiVersion, kind }) => ({ apiVersion, kind }))).toEqual([
      { apiVersion: "v1", kind: "ConfigMap" },
    ]);
    expect(await client.remove(refTo("plain"))).toBe(true);
    expect(await client.get(refTo("plain"))).toBeUndefined();
    expect(await client.remove(refTo("plain"))).toBe(false);
  });

  test("an apply keeps the fields of other clients, removes fields that it no longer contains, and omits null and undefined", async () => {
    await client.apply(configMap("shared", { ours: "1", dropped: "1" }));
    const live = (await client.get(refTo("shared"))) as KubernetesObject;
    await client.replace({ ...live, data: { ...(live.data as object), theirs: "1" } });
    await client.apply({ ...configMap("shared", { ours: "2" }), immutable: null, binaryData: undefined });
    const after = (await client.get(refTo("shared"))) as KubernetesObject;
    expect(after.data).toEqual({ ours: "2", theirs: "1" });
    expect(after).not.toHaveProperty("immutable");
  });

  test("an apply of a status changes only the status", async () => {
    const budget: KubernetesObject = {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "status", namespace },
      spec: { maxUnavailable: 1, selector: { matchLabels: { a: "b" } } },
    };
    await client.apply(budget);
    const status = { currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0 };
    const after = await client.applyStatus({ ...budget, spec: { maxUnavailable: 7 }, status });
    expect(after.status).toMatchObject(status);
    expect(after.spec).toMatchObject({ maxUnavailable: 1 });
  });

  test("the client deletes only the object with the given uid", async () => {
    const deleted = await client.apply(configMap("again"));
    await client.remove(refTo("again"));
    const recreated = await client.apply(configMap("again"));
    expect(await client.remove(refTo("again"), { uid: deleted.metadata.uid ?? "" })).toBe(false);
    expect((await client.get(refTo("again")))?.metadata.uid).toBe(recreated.metadata.uid);
  });

  test("the client does not delete an object that changed after it was read", async () => {
    const read = await client.apply(configMap("changed"));
    await client.apply(configMap("changed", { a: "1" }));
    const { uid = "", resourceVersion = "" } = read.metadata;
    expect(await refusal(client.remove(refTo("changed"), { uid, resourceVersion }))).toMatchObject({
      status: 409,
    });
  });
});

describe("the error of a rejected request", () => {
  test("has the field and the rule of the API server", async () => {
    const error = await refusal(
      client.apply({ ...configMap("x"), metadata: { name: "Not_Allowed", namespace } }),
    );
    expect(error).toMatchObject({ status: 422, reason: "Invalid" });
    expect(error.causes[0]).toMatchObject({ field: "metadata.name" });
    expect(error.message).toContain("RFC 1123");
  });

  test("contains no value of a Secret", async () => {
    const metadata = { name: "s", namespace, labels: { pasted: "hunter2 in the wrong place" } };
    const secret = { apiVersion: "v1", kind: "Secret", metadata };
    const error = await refusal(client.apply(secret));
    expect(error).toMatchObject({ status: 422, causes: [{ field: "metadata.labels" }] });
    expect(JSON.stringify([error, error.message, error.stack, error.cause])).not.toContain("hunter2");
    // For other kinds, the error includes the message of the API server, with the values.
    const ofConfigMap = await refusal(client.apply({ ...secret, kind: "ConfigMap" }));
    expect(ofConfigMap.message).toContain("hunter2");
  });

  test("is returned without a retry for a 403", async () => {
    first({ kind: "answer", status: 403 });
    expect(await refusal(client.get(refTo("x")))).toMatchObject({ status: 403 });
    expect(proxy.requests).toHaveLength(1);
  });
});

describe("a retry", () => {
  test.each([429, 500, 502, 503, 504])("repeats an apply after the status %i", async (status) => {
    first({ kind: "answer", status }, { kind: "answer", status });
    await client.apply(configMap("repeated", { status: String(status) }));
    expect(proxy.requests).toHaveLength(3);
  });

  test("repeats a read after its connection was closed", async () => {
    first({ kind: "drop", when: "before" }, { kind: "drop", when: "after" });
    expect(await client.get(refTo("absent"))).toBeUndefined();
    expect(proxy.requests).toHaveLength(3);
  });

  test("repeats an apply after its response was lost, with the same result", async () => {
    first({ kind: "drop", when: "after" });
    const once = await client.apply(configMap("lost-answer", { a: "1" }));
    expect(await client.get(refTo("lost-answer"))).toEqual(once);
    expect(proxy.count("write")).toBe(2);
  });

  test("does not repeat a create after its response was lost, because the create may have succeeded", async () => {
    first({ kind: "drop", when: "after" });
    expect(await refusal(client.create(configMap("once")))).toMatchObject({
      status: 0,
      reason: "Unreachable",
    });
    expect(proxy.count("write")).toBe(1);
    expect(await client.get(refTo("once"))).toBeDefined();
  });

  test("repeats a create after a 429", async () => {
    first({ kind: "answer", status: 429 });
    await client.create(configMap("after-429"));
    expect(proxy.count("write")).toBe(2);
  });

  test("waits for a short Retry-After, and fails immediately for a long Retry-After", async () => {
    const { clock, client } = onFakeClock();
    first({ kind: "answer", status: 429, headers: { "retry-after": "1" } });
    const answer = client.get(refTo("absent"));
    await waits(clock, 1_050);
    await clock.advance(1_050);
    expect(await answer).toBeUndefined();
    expect(proxy.requests).toHaveLength(2);
    first({ kind: "answer", status: 429, headers: { "retry-after": "60" } });
    expect(await refusal(client.get(refTo("absent")))).toMatchObject({ status: 429, retryAfterMs: 60_000 });
    client.close();
  });

  test("stops after four attempts", async () => {
    proxy.rule = () => ({ kind: "answer", status: 503 });
    expect(await refusal(client.get(refTo("absent")))).toMatchObject({ status: 503 });
    expect(proxy.requests).toHaveLength(4);
  });

  test("reads the credentials again once after a 401", async () => {
    first({ kind: "answer", status: 401 });
    expect(await client.get(refTo("absent"))).toBeUndefined();
    expect(proxy.refreshes).toBe(1);
    proxy.rule = () => ({ kind: "answer", status: 401 });
    expect(await refusal(client.get(refTo("absent")))).toMatchObject({ status: 401 });
    expect(proxy.requests).toHaveLength(4);
  });
});

describe("a missing or too large response", () => {
  test("fails after the time limit", async () => {
    const impatient = new ClusterClient(proxy.connection(), { timeoutMs: 100, attempts: 1 });
    proxy.rule = () => ({ kind: "hang" });
    expect(await refusal(impatient.get(refTo("x")))).toMatchObject({ status: 0, reason: "Timeout" });
    impatient.close();
  });

  test("ends with an error after an abort, also while the client waits for a retry", async () => {
    proxy.rule = () => ({ kind: "hang" });
    const { clock, client } = onFakeClock();
    const hanging = new AbortController();
    const hung = refusal(client.get(refTo("x"), { signal: hanging.signal }));
    await eventually("the request", () => proxy.requests.length === 1);
    hanging.abort();
    expect(await hung).toMatchObject({ status: 0, reason: "Aborted" });
    proxy.rule = () => ({ kind: "answer", status: 429, headers: { "retry-after": "9" } });
    const waiting = new AbortController();
    const delayed = refusal(client.get(refTo("x"), { signal: waiting.signal }));
    await waits(clock, 9_050);
    waiting.abort();
    // The clock does not move, so only the abort can end the pause.
    expect(await delayed).toMatchObject({ reason: "Aborted" });
    client.close();
  });

  test("of an unreachable server causes an error that names the request", async () => {
    const vacant = createServer().listen(0, "127.0.0.1");
    await once(vacant, "listening");
    const { port } = vacant.address() as AddressInfo;
    await once(vacant.close(), "close");
    const connection = { ...proxy.connection(), server: new URL(`http://127.0.0.1:${port}`) };
    const error = await refusal(new ClusterClient(connection, { attempts: 1 }).get(refTo("x")));
    expect(error).toMatchObject({ status: 0, reason: "Unreachable" });
    expect(error.message).toContain("/configmaps/x");
  });

  test("causes an error if the response is larger than the limit", async () => {
    await client.apply(configMap("large", { text: "x".repeat(200_000) }));
    const small = new ClusterClient(proxy.connection(), { maxBodyBytes: 100_000, attempts: 1 });
    expect(await refusal(small.get(refTo("large")))).toMatchObject({ status: 0, reason: "TooLarge" });
    small.close();
  });
});

test("a service account's token is read again after a 401", async () => {
  const { server, caPem } = inject("controlPlane");
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-account-"));
  const account: KubernetesObject = {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "reader", namespace },
  };
  await admin.apply(account);
  await writeFile(`${folder}/ca.crt`, caPem);
  await writeFile(`${folder}/namespace`, namespace);
  await writeFile(`${folder}/token`, "expired");
  const { hostname, port } = new URL(server);
  const connection = await connect({
    serviceHost: hostname,
    servicePort: port,
    serviceAccountFolder: folder,
  });
  const inPod = new ClusterClient(connection);
  expect(connection.namespace).toBe(namespace);
  expect(await refusal(inPod.get(refTo("x")))).toMatchObject({ status: 401 });
  await writeFile(`${folder}/token`, await tokenOf("reader"));
  // The account has no permission, so the status 403 shows that the API server accepted the token.
  expect(await refusal(inPod.get(refTo("x")))).toMatchObject({ status: 403 });
  inPod.close();
  await rm(folder, { recursive: true });
});

async function tokenOf(account: string): Promise<string> {
  const { binDirectory, kubeconfigPath } = inject("controlPlane");
  const command = ["--kubeconfig", kubeconfigPath, "-n", namespace, "create", "token", account];
  const { stdout } = await promisify(execFile)(`${binDirectory}/kubectl`, command);
  return stdout.trim();
}

describe("watches of single Secrets", () => {
  const count = 250;
  const connections = () =>
    process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
  const watchSecret = (from: ClusterClient, name: string) =>
    from.openWatch("Secret", {
      namespace,
      fieldSelector: `metadata.name=${name}`,
      metadataOnly: true,
      resourceVersion: undefined,
      timeoutSeconds: 300,
    });

  test("share connections, and each watch reports its own Secret", async () => {
    const own = await adminClient(inject("controlPlane"));
    const [before, rssBefore] = [connections(), process.memoryUsage().rss];
    const names = Array.from({ length: count }, (_, index) => `s-${index}`);
    const watches = await Promise.all(names.map((name) => watchSecret(own, name)));
    console.info(
      `${count} watches: ${connections() - before} connections, ${((process.memoryUsage().rss - rssBefore) / 1024 / 1024).toFixed(0)} MiB`,
    );
    expect(connections() - before).toBeLessThanOrEqual(4);
    const last = names[count - 1] ?? "";
    await admin.create({ apiVersion: "v1", kind: "Secret", metadata: { name: last, namespace } });
    const added = watches[count - 1]?.find((line) => String(line).includes('"ADDED"'));
    expect(String(await added)).toContain(`"name":"${last}"`);
    for (const watch of watches) watch.destroy();
    await eventually("the end of the connections", () => connections() <= before);
    own.close();
  });

  test("are opened again over a new connection, and report a rejection by the API server", async () => {
    const own = await adminClient(inject("controlPlane"));
    const first = await watchSecret(own, "cut");
    own.close();
    await first.toArray();
    const second = await watchSecret(own, "cut");
    second.destroy();
    await expect(
      own.openWatch("Secret", {
        namespace,
        fieldSelector: "no.such.field=x",
        resourceVersion: undefined,
        timeoutSeconds: 9,
      }),
    ).rejects.toMatchObject({ status: 400 });
    own.close();
  });

  test("use HTTP/1.1 for a server without HTTP/2", async () => {
    const { key, cert } = await selfSigned();
    const versions: string[] = [];
    const server = createSecureServer({ key, cert }, (request, response) => {
      versions.push(request.httpVersion);
      response.writeHead(200).write("{}\n");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const credentials = async () => ({ headers: {}, tls: { ca: cert } });
    const address = new URL(`https://127.0.0.1:${port}`);
    const own = new ClusterClient({
      server: address,
      namespace: undefined,
      credentials,
      refresh: () => undefined,
    });
    const watches = [await watchSecret(own, "plain"), await watchSecret(own, "plain")];
    expect(versions).toEqual(["1.1", "1.1"]);
    for (const watch of watches) watch.destroy();
    own.close();
    server.close();
  });
});
