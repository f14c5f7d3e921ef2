import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";
import { controlPlane } from "../../support/cluster/control-plane.ts";
import { eventually } from "../../support/eventually.ts";

const run = promisify(execFile);

async function kubectl(...parts: string[]): Promise<string> {
  const { binDirectory, kubeconfigPath } = inject("controlPlane");
  const { stdout } = await run(join(binDirectory, "kubectl"), parts, {
    env: { ...process.env, KUBECONFIG: kubeconfigPath },
  });
  return stdout;
}

test("the API server of the test suite has the pinned Kubernetes version and accepts an administrator", async () => {
  expect(JSON.parse(await kubectl("version", "-o", "json"))).toMatchObject({
    serverVersion: { gitVersion: "v1.36.3" },
  });
});

test("a foreground deletion waits for children, and the deletion of a namespace deletes its objects", async () => {
  const client = await adminClient(inject("controlPlane"));
  const namespace = await freshNamespace(client, "collected");
  const configMap = (name: string, metadata: object = {}) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace, ...metadata },
  });
  const { uid } = (await client.create(configMap("owner"))).metadata;
  const ownerReferences = [
    { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid, blockOwnerDeletion: true },
  ];
  await client.create(configMap("child", { ownerReferences }));
  const refOf = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", name, namespace });

  await client.remove(refOf("owner"), { propagation: "Foreground" });
  await eventually("the deletion of the owner", async () => (await client.get(refOf("owner"))) === undefined);
  expect(await client.get(refOf("child"))).toBeUndefined();
  const namespaceRef = { apiVersion: "v1", kind: "Namespace", name: namespace };
  await client.remove(namespaceRef);
  await eventually(
    "the deletion of the namespace",
    async () => (await client.get(namespaceRef)) === undefined,
  );
  client.close();
});

test("a second control plane starts beside the first one, and removes its files and processes when it stops", async () => {
  let directory = "";
  {
    await using other = await controlPlane();
    directory = other.address.directory;
    expect(other.address.server).not.toBe(inject("controlPlane").server);
    const { stdout } = await run("pgrep", ["-f", directory]);
    expect(stdout.trim().split("\n")).toHaveLength(2);
  }
  expect(existsSync(directory)).toBe(false);
  await expect(run("pgrep", ["-f", directory])).rejects.toThrow();
});

test("the programs of a control plane end when the process that started them is killed", async () => {
  const starter = join(import.meta.dirname, "../../support/cluster/control-plane.ts");
  const script = `import { controlPlane } from ${JSON.stringify(starter)};
    console.log((await controlPlane()).address.directory);
    process.kill(process.pid, "SIGKILL");`;
  const killed = await run(process.execPath, ["--input-type=module", "-e", script]).catch(
    (error: unknown) => error,
  );
  const directory = (killed as { stdout: string }).stdout.trim();
  expect(directory).toContain("svc-tts-control-plane-");
  await expect
    .poll(() =>
      run("pgrep", ["-f", directory]).then(
        () => "alive",
        () => "ended",
      ),
    )
    .toBe("ended");
});
