/** What the chart brings and takes: `helm test`, `helm uninstall`, and installing again. */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { Kubectl, run } from "../support/real-cluster.ts";
import { ttsDeployment, World } from "../support/world.ts";

const world = new World({ cluster: inject("cluster"), namespace: "e2e-release" });
const release = "tts-operator";
const system = new Kubectl("svc-tts-system");
const chart = "charts/tts-operator";

beforeAll(async () => {
  await world.open();
  await world.license(30);
  await world.kubectl.apply(ttsDeployment("voice"));
  await world.condition("voice", "Ready", "True");
});

afterAll(async () => {
  await system.do("delete", "secret", "e2e-test-key", "--ignore-not-found");
  await world.close();
});

describe("the chart", () => {
  it("has a test that speaks", async () => {
    await world.copyKeyTo(system, "e2e-test-key");
    await helm(
      "upgrade",
      release,
      chart,
      "--reuse-values",
      "--wait",
      "--timeout",
      "120s",
      "--set",
      `test.endpoint=${world.url("voice").replace("/v1/svc-tts", "")}`,
      "--set",
      "test.apiKeySecret.name=e2e-test-key",
    );
    const printed = await helm("test", release, "--timeout", "120s");
    expect(printed).toMatch(/Phase:\s+Succeeded/);
    expect(printed).toMatch(/spoke \d/);
  });

  it("runs an operator without root and with a read-only root", async () => {
    const [pod] = await system.list("pods", "app.kubernetes.io/name=tts-operator");
    expect(pod?.spec.containers[0].securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    });
    expect((await system.exec(pod?.metadata.name ?? "", "node", "-p", "process.getuid()")).trim()).toBe(
      "65532",
    );
  });

  it("leaves TtsDeployments and their pods when the operator is uninstalled, and takes them up again", async () => {
    const before = await pods();
    const values = await helm("get", "values", release, "--output", "yaml");
    await helm("uninstall", release, "--wait", "--timeout", "120s");
    await eventually("the operator's pod to be gone", async () => {
      return (await system.list("pods", "app.kubernetes.io/name=tts-operator")).length === 0;
    });
    expect(await world.deployment("voice")).toBeDefined();
    expect(
      (await world.speak("voice", { text: "Still here.", speaker: "alan", modelId: "mist" })).status,
    ).toBe(200);
    const again = await run(
      "helm",
      ["-n", system.namespace, "install", release, chart, "--values", "-", "--wait", "--timeout", "120s"],
      values,
    );
    expect(again).toMatchObject({ code: 0 });
    await world.condition("voice", "Ready", "True");
    expect(await pods()).toEqual(before);
  });
});

async function pods(): Promise<string[]> {
  return (await world.kubectl.list("pods", "tts.svc.dev/deployment=voice"))
    .map((p) => p.metadata.name)
    .sort();
}

async function helm(...args: string[]): Promise<string> {
  const ran = await run("helm", ["-n", system.namespace, ...args]);
  if (ran.code !== 0) throw new Error(`helm ${args.join(" ")}: ${ran.stderr.trim()}`);
  return ran.stdout + ran.stderr; // a test pod's log goes to standard error
}
