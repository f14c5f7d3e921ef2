import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { controlPlane } from "../../support/control-plane.ts";

const run = promisify(execFile);

async function kubectl(...parts: string[]): Promise<string> {
  const { binDirectory, kubeconfigPath } = inject("controlPlane");
  const { stdout } = await run(join(binDirectory, "kubectl"), parts, {
    env: { ...process.env, KUBECONFIG: kubeconfigPath },
  });
  return stdout;
}

test("the suite's API server is the pinned Kubernetes and answers an administrator", async () => {
  expect(JSON.parse(await kubectl("version", "-o", "json"))).toMatchObject({
    serverVersion: { gitVersion: "v1.36.3" },
  });
});

test("foreground deletion waits for children, and a namespace ends with what it holds", async () => {
  await kubectl("create", "namespace", "collected");
  await kubectl("-n", "collected", "create", "configmap", "owner");
  const uid = await kubectl("-n", "collected", "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}");
  await kubectl("-n", "collected", "create", "configmap", "child");
  const ownerReferences = [
    { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid, blockOwnerDeletion: true },
  ];
  const patch = JSON.stringify({ metadata: { ownerReferences } });
  await kubectl("-n", "collected", "patch", "configmap", "child", "--type=merge", "-p", patch);

  await kubectl("-n", "collected", "delete", "configmap", "owner", "--cascade=foreground", "--timeout=30s");
  expect(await kubectl("-n", "collected", "get", "configmap", "-o", "name")).not.toContain("child");
  await kubectl("delete", "namespace", "collected", "--timeout=30s");
  expect(await kubectl("get", "namespace", "-o", "name")).not.toContain("collected");
});

test("a second control plane starts beside the first and leaves nothing when it stops", async () => {
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

test("the programs end with the process that started them, even when it is killed", async () => {
  const starter = join(import.meta.dirname, "../../support/control-plane.ts");
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
