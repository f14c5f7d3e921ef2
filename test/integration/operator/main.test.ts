import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, inject, it } from "vitest";
import { childEnvironment } from "../../../lib/child-processes.ts";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";
import { eventually } from "../../support/eventually.ts";
import { leasePort, leasePorts } from "../../support/port-lease.ts";
import { licenseIssuer } from "../../support/server/licenses.ts";

const address = inject("controlPlane");
const main = join(import.meta.dirname, "../../../operator/main.ts");

interface Process {
  readonly child: ChildProcess;
  readonly probes: string;
  readonly metrics: string;
  output: string;
}

let folder: string;
let namespace: string;
let processes: Process[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-operator-"));
  await writeFile(join(folder, "jwks.json"), JSON.stringify((await licenseIssuer()).keys));
  const client = await adminClient(address);
  namespace = await freshNamespace(client, "main");
  client.close();
  processes = [];
});

afterEach(async () => {
  for (const { child } of processes) child.kill("SIGKILL");
  await rm(folder, { recursive: true });
});

async function start(args: string[], environment: Record<string, string> = {}): Promise<Process> {
  const [probePort, metricsPort] = await leasePorts(2);
  const child = spawn(process.execPath, [main, ...args], {
    env: {
      ...childEnvironment(),
      PATH: process.env.PATH,
      KUBECONFIG: address.kubeconfigPath,
      POD_NAMESPACE: namespace,
      TTS_WATCH_NAMESPACES: namespace,
      TTS_SERVER_IMAGE: "registry.example/server:1",
      TTS_LICENSE_KEYS_FILE: join(folder, "jwks.json"),
      TTS_PROBE_PORT: String(probePort),
      TTS_METRICS_PORT: String(metricsPort),
      ...environment,
    },
  });
  const started: Process = {
    child,
    output: "",
    probes: `http://127.0.0.1:${probePort}`,
    metrics: `http://127.0.0.1:${metricsPort}/metrics`,
  };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      started.output += text;
    });
  }
  processes.push(started);
  return started;
}

async function statusOf(url: string): Promise<number> {
  return fetch(url).then(
    (response) => response.status,
    () => 0,
  );
}

async function until(condition: () => Promise<boolean> | boolean, started: Process): Promise<void> {
  await eventually("the expected state of the process", condition, { seen: () => started.output });
}

async function leaseHolder(): Promise<unknown> {
  const client = await adminClient(address);
  const ref = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", namespace, name: "tts-operator" };
  const lease = await client.get(ref);
  client.close();
  return (lease?.spec as { holderIdentity?: string } | undefined)?.holderIdentity;
}

async function ended({ child }: Process): Promise<number | null> {
  if (child.exitCode === null) await once(child, "exit");
  return child.exitCode;
}

it("the operator becomes ready, serves metrics, and transfers the leadership when a signal stops it", async () => {
  const first = await start(["run"], { POD_NAME: "first" });
  await until(async () => (await statusOf(`${first.probes}/readyz`)) === 200, first);
  await until(() => first.output.includes('"this process is the leader now"'), first);
  const second = await start(["run"], { POD_NAME: "second" });
  await until(async () => (await statusOf(`${second.probes}/readyz`)) === 200, second);
  expect(second.output).not.toContain('"this process is the leader now"');
  expect(await (await fetch(first.metrics)).text()).toMatch(/rest_client_requests_total\{.*method="GET"/);

  first.child.kill("SIGTERM");
  expect(await ended(first)).toBe(0);
  // The operator releases the Lease when it stops. Otherwise the Lease would name it until the Lease expires.
  expect(await leaseHolder()).not.toMatch(/^first_/);
  await until(() => second.output.includes('"this process is the leader now"'), second);
  for (const line of first.output.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("message");
});

it("two operators of different releases in one namespace are both leaders", async () => {
  const first = await start(["run"], { POD_NAME: "first", TTS_LEASE_NAME: "one" });
  const second = await start(["run"], { POD_NAME: "second", TTS_LEASE_NAME: "two" });
  await until(() => first.output.includes('"this process is the leader now"'), first);
  await until(() => second.output.includes('"this process is the leader now"'), second);
});

it("the operator is alive but not ready while the API server is unreachable, and ends at a signal", async () => {
  const kubeconfig = join(folder, "nowhere.kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "a", cluster: { server: `https://127.0.0.1:${await leasePort()}` } }],
    users: [{ name: "a", user: { token: "none" } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    "current-context": "a",
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  const started = await start(["run"], { KUBECONFIG: kubeconfig });
  await until(async () => (await statusOf(`${started.probes}/healthz`)) === 200, started);
  await until(() => started.output.includes("a watch was interrupted"), started);
  expect(await statusOf(`${started.probes}/readyz`)).toBe(503);
  started.child.kill("SIGTERM");
  expect(await ended(started)).toBe(0);
});

it.each([
  ["a missing image", ["run"], { TTS_SERVER_IMAGE: "" }, /TTS_SERVER_IMAGE is not set/],
  ["an unknown pull policy", ["run"], { TTS_SERVER_IMAGE_PULL_POLICY: "Sometimes" }, /must be one of Always/],
  [
    "an unknown pull policy of the collector",
    ["run"],
    { TTS_COLLECTOR_IMAGE_PULL_POLICY: "Sometimes" },
    /TTS_COLLECTOR_IMAGE_PULL_POLICY is Sometimes; it must be one of Always/,
  ],
  [
    "a missing file of license keys",
    ["run"],
    { TTS_LICENSE_KEYS_FILE: "/nowhere" },
    /cannot read license keys from \/nowhere/,
  ],
  [
    "a required license without a key",
    ["run"],
    { TTS_LICENSE_REQUIRED: "true", TTS_LICENSE_KEYS_FILE: "" },
    /TTS_LICENSE_REQUIRED is true, but no license key is set; set .*license\.jwks/,
  ],
  [
    "a missing class file",
    ["run"],
    { TTS_CLASS_FILE: "/nowhere" },
    /cannot read defaults and limits from \/nowhere/,
  ],
  [
    "a class file without watched namespaces",
    ["run"],
    { TTS_CLASS_FILE: "/nowhere", TTS_WATCH_NAMESPACES: "" },
    /TTS_CLASS_FILE is set, but TTS_WATCH_NAMESPACES is not; create a TtsClass/,
  ],
  ["an invalid port", ["run"], { TTS_PROBE_PORT: "70000" }, /TTS_PROBE_PORT is 70000/],
  ["an unknown command", ["walk"], {}, /unknown command: walk; see tts-operator --help/],
])("the operator reports %s in one line", async (_what, args, environment, message) => {
  const started = await start(args, environment);
  expect(await ended(started)).toBe(2);
  expect(started.output).toMatch(message);
  expect(started.output.trim().split("\n")).toHaveLength(1);
});

it("tts-operator --help prints the usage", async () => {
  const started = await start(["--help"]);
  expect(await ended(started)).toBe(0);
  expect(started.output).toContain("TTS_WATCH_NAMESPACES");
});
