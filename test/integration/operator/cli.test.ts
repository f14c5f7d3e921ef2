/** Runs the commands `explain` and `support-bundle` with a real API server and a running operator. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { childEnvironment } from "../../../lib/child-processes.ts";
import type { Explanation } from "../../../operator/cli/explain.ts";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

const address = inject("controlPlane");
const main = join(import.meta.dirname, "../../../operator/main.ts");

let house: OperatorHouse;
let folder: string;

useOperatorHouse((opened) => {
  house = opened;
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-tts-cli-"));
});

afterEach(() => rm(folder, { recursive: true }));

async function command(args: string[], kubeconfig = address.kubeconfigPath) {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: folder,
    env: { ...childEnvironment(), PATH: process.env.PATH, KUBECONFIG: kubeconfig },
  });
  const [out, problems, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ]);
  return { code, out, problems };
}

async function explained(): Promise<Explanation> {
  const { out } = await command(["explain", "demo", "-n", house.namespace, "-o", "json"]);
  return JSON.parse(out) as Explanation;
}

const reasons = ({ blockers }: Explanation) => blockers.map(({ about, reason }) => `${about}: ${reason}`);

describe("explain", () => {
  it("reports each missing part until the TtsDeployment is ready: license, keys, pods", async () => {
    await house.putDeployment({ api: { keys: { secretRef: { name: "keys" } } } });
    await house.untilCondition("Ready", /^False/);
    const missing = await command(["explain", "demo", "-n", house.namespace]);
    expect(missing.code).toBe(3);
    expect(missing.out).toContain("1. license: Missing");
    expect(missing.out).toContain(
      `$ kubectl -n ${house.namespace} create secret generic license --from-file=license.jwt=license.jwt`,
    );
    expect(missing.out).toContain(
      `Secret ${house.namespace}/keys, which spec.api.keys.secretRef names, does not exist`,
    );

    await house.putLicense(await house.issuer.issue());
    await house.serve("demo-api", "demo-mist");
    await house.untilCondition("ApiReady", /KeysSecretMissing/);
    const keyless = await explained();
    expect(keyless.state).toBe("blocked");
    expect(reasons(keyless)).toEqual(["API: KeysSecretMissing"]);
    expect(keyless.blockers[0]?.commands[0]).toContain("svc-tts keys create");

    await house.putLicense("unused", "keys");
    await house.untilReady();
    const ready = await command(["explain", "demo", "-n", house.namespace]);
    expect(ready.code).toBe(0);
    expect(ready.out).toContain(`http://demo-api.${house.namespace}.svc:8000`);
  });

  it("reports a pod without a free device, with the message of the scheduler", async () => {
    await house.ready();
    await house.putDeployment({}, [{ name: "mist", kind: "mist", replicas: 2 }]);
    await putUnschedulablePod();
    await house.untilCondition("ModelsReady", /NoGpu/);
    const found = await explained();
    expect(found.state).toBe("progressing");
    expect(reasons(found)).toEqual(["pool mist: NoGpu"]);
    expect(found.blockers[0]?.commands.at(-1)).toBe(`kubectl -n ${house.namespace} describe pod demo-mist-x`);
  });

  it("reports a missing operator if no operator has reconciled the TtsDeployment", async () => {
    await house.stopOperator();
    await house.putDeployment();
    const found = await explained();
    expect(found.state).toBe("unwatched");
    expect(reasons(found)).toContain("operator: NoOperator");
  });

  it("names the objects that the user may not read", async () => {
    await house.ready();
    const view = await kubeconfigOf("get", "ttsdeployments");
    const { code, out } = await command(["explain", "demo", "-n", house.namespace], view);
    expect(code).toBe(0);
    expect(out).toMatch(/The command could not read: .*pods \(not allowed\).*Secret license \(not allowed\)/);
  });

  it("reports an invalid argument in one line", async () => {
    await house.putDeployment();
    const invalid: [string[], RegExp][] = [
      [["explain", "other"], /there is no TtsDeployment other in namespace .*; existing ones: demo/],
      [["explain"], /takes the name of one TtsDeployment/],
      [["explain", "demo", "-o", "xml"], /--output is xml; it must be json/],
      [["explain", "demo", "--loud"], /explain: Unknown option '--loud'/],
      [["support-bundle", "-f", "."], /cannot be written|exists/],
    ];
    for (const [args, message] of invalid) {
      const { code, problems } = await command([...args, "-n", house.namespace]);
      expect(problems.trim().split("\n")).toEqual([expect.stringMatching(message)]);
      expect(code).toBe(2);
    }
  });
});

/** Writes a kubeconfig of a user who has one permission in the namespace. Returns its path. */
async function kubeconfigOf(verbs: string, resources: string): Promise<string> {
  const { namespace } = house;
  await house.kubectl("create", "serviceaccount", "viewer");
  await house.kubectl("create", "role", "viewer", `--verb=${verbs}`, `--resource=${resources}.tts.svc.dev`);
  await house.kubectl(
    "create",
    "rolebinding",
    "viewer",
    "--role=viewer",
    `--serviceaccount=${namespace}:viewer`,
  );
  const token = (await house.kubectl("create", "token", "viewer")).trim();
  const path = join(folder, "viewer.kubeconfig");
  const cluster = { server: address.server, "certificate-authority": join(address.directory, "pki/ca.crt") };
  const config = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "c" },
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

async function putUnschedulablePod(): Promise<void> {
  const { namespace } = house;
  const labels = { "tts.svc.dev/deployment": "demo", "tts.svc.dev/pool": "mist" };
  const pod = await house.admin.create({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "demo-mist-x", namespace, labels },
    spec: { containers: [{ name: "mist", image: "x", env: [{ name: "HUSH", value: hiddenValue }] }] },
  });
  const message = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.";
  await house.setStatus(pod, {
    conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
  });
}

const hiddenValue = "a-value-that-must-stay-secret";

/** Returns every file of the only archive in the folder, by its path in the archive. */
async function unpacked(): Promise<Map<string, string>> {
  const [archive = ""] = (await readdir(folder)).filter((name) => name.endsWith(".tar.gz"));
  expect((await stat(join(folder, archive))).mode & 0o777).toBe(0o600);
  await promisify(execFile)("tar", ["-xzf", archive], { cwd: folder });
  const root = join(folder, archive.replace(".tar.gz", ""));
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    await Promise.all(
      files.map(async (path) => [path.slice(root.length + 1), await readFile(path, "utf8")] as const),
    ),
  );
}

describe("support-bundle", () => {
  it("contains objects, events and explanations, and no secret values", async () => {
    const license = await house.issuer.issue();
    const keys = "keys:\n  - digest: 0123456789abcdef0123456789abcdef\n";
    await house.putLicense(license);
    await house.putLicense(keys, "keys");
    await house.putDeployment({ api: { keys: { secretRef: { name: "keys" } } } }, [
      {
        name: "mist",
        kind: "mist",
        env: [{ name: "UPSTREAM", value: `https://user:${hiddenValue}@upstream.example` }],
        podTemplate: {
          spec: { containers: [{ name: "mist", env: [{ name: "HUSH", value: hiddenValue }] }] },
        },
      },
    ]);
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
    await putUnschedulablePod();
    // The annotation of both objects contains the license.
    const note = `note=${license}`;
    await house.kubectl("annotate", "ttsd/demo", "secret/demo-token", note);

    const { code, out, problems } = await command(["support-bundle", "-n", house.namespace]);
    expect(code, problems).toBe(0);
    expect(out).toMatch(/^tts-support-.*\.tar\.gz\n$/);
    const files = await unpacked();
    expect([...files.keys()]).toEqual(
      expect.arrayContaining([
        "README.txt",
        "events.jsonl",
        "explain/demo.txt",
        "resources/ttsdeployments/demo.yaml",
        "resources/ttsmodelpools/demo-mist.yaml",
        "resources/deployments/demo-api.yaml",
        "resources/configmaps/demo-routing.yaml",
        "resources/secrets/demo-token.yaml",
        "resources/pods/demo-mist-x.yaml",
        "cluster/customresourcedefinitions/ttsdeployments.tts.svc.dev.yaml",
      ]),
    );
    expect(files.get("events.jsonl")).toContain("Serving");
    expect(files.get("resources/ttsdeployments/demo.yaml")).toContain("uid:");

    const token = await house.mustGet("Secret", "demo-token");
    const secrets = Object.values(token.data as Record<string, string>);
    const values = [
      ...secrets,
      ...secrets.map((value) => Buffer.from(value, "base64").toString()),
      license,
      hiddenValue,
    ];
    values.push("0123456789abcdef0123456789abcdef", Buffer.from(license).toString("base64"));
    for (const [path, content] of files) {
      for (const value of values)
        expect(content.includes(value), `${path} contains a secret value`).toBe(false);
    }
  });

  it("names in its README the objects that the user may not read", async () => {
    await house.ready();
    const view = await kubeconfigOf("get,list", "ttsdeployments");
    const { code, problems } = await command(["support-bundle", "demo", "-n", house.namespace], view);
    expect(code).toBe(0);
    expect(problems).toContain("The command could not read nodes (not allowed).");
    expect((await unpacked()).get("README.txt")).toContain("- pods (not allowed)");
  });
});

describe("the log of a container", () => {
  let url: string;
  let requestedPaths: string[];
  const server = createServer((request, response) => {
    requestedPaths.push(request.url ?? "");
    const previous = request.url?.includes("previous=true");
    if (previous)
      response
        .writeHead(400)
        .end('{"kind":"Status","reason":"BadRequest","message":"previous terminated container not found"}');
    else response.end("2026-01-01T00:00:00Z started\n");
  });

  beforeAll(async () => {
    requestedPaths = [];
    await once(server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  it("is requested with limits, and is undefined if the container has no previous run", async () => {
    const client = new ClusterClient({
      server: new URL(url),
      namespace: undefined,
      credentials: async () => ({ headers: {}, tls: {} }),
      refresh: () => undefined,
    });
    const options = { container: "mist", tailLines: 10, limitBytes: 1000 };
    const pod = { namespace: "ns", name: "demo" };
    expect(await client.logOf(pod, options)).toBe("2026-01-01T00:00:00Z started\n");
    expect(await client.logOf(pod, { ...options, previous: true })).toBeUndefined();
    expect(requestedPaths[0]).toBe(
      "/api/v1/namespaces/ns/pods/demo/log?container=mist&tailLines=10&limitBytes=1000&timestamps=true",
    );
    client.close();
  });
});
