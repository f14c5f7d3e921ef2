/**
 * Tests a release of the chart: `helm test`, an upgrade and a rollback while streams run, `helm uninstall`,
 * and another installation.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { Deployed } from "../support/cluster/deployed.ts";
import { replaceOperator } from "../support/cluster/disruptions.ts";
import { Release, type Values } from "../support/cluster/real-cluster.ts";
import { mist, World } from "../support/cluster/world.ts";
import { eventually } from "../support/eventually.ts";

const name = "voice";
const world = new World(inject("cluster"), "release");
const deployed = new Deployed(world, name);
const release = new Release();
const keySecret = `${world.namespace}-key`;
const text = "Still here, and heard to the end of the sentence, whatever becomes of the operator.";
const body = { text, speaker: "alan", modelId: "mist", samplingRate: 44_100 };
let installed: Values = {};

beforeAll(async () => {
  installed = await release.values();
  await world.openWith(name, { models: [mist({ maxConcurrentStreams: 24 })] });
});

/** Restores the release, also after a failed test. */
afterAll(async () => {
  try {
    await release.restore(installed);
    await release.system.do("delete", "secret", keySecret, "--ignore-not-found");
  } finally {
    await world.close();
  }
});

describe("the chart", () => {
  it("includes a helm test that synthesizes speech", async () => {
    await world.copyKeyTo(release.system, keySecret);
    const endpoint = world.url(name).replace("/v1/svc-tts", "");
    await release.upgrade(
      "--reset-then-reuse-values",
      ...["--set", `test.endpoint=${endpoint}`, "--set", `test.apiKeySecret.name=${keySecret}`],
    );
    const printed = await release.test();
    expect(printed).toMatch(/Phase:\s+Succeeded/);
    expect(printed).toMatch(/returned \d/);
  });

  it("runs the operator as non-root with a read-only root file system", async () => {
    const [pod] = await release.operatorPods();
    expect(pod?.spec.containers[0].securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    });
    const user = await release.system.exec(pod?.metadata.name ?? "", "node", "-p", "process.getuid()");
    expect(user.trim()).toBe("65532");
  });
});

describe("a release while 16 streams and 4 WebSockets speak", () => {
  async function changeUnderStreams(what: string, change: () => Promise<void>): Promise<void> {
    const pods = await deployed.allPods();
    const act = () => replaceOperator(world, deployed, release, change);
    await deployed.uncut(what, body, act, { streams: 16, sockets: 4, listening: true });
    expect(await deployed.allPods()).toEqual(pods);
  }

  const logsDebug = async () => {
    const [pod] = await release.operatorPods();
    return JSON.stringify(pod?.spec.containers[0]).includes('"debug"');
  };

  it("keeps its values, pods and streams in an upgrade with --reset-then-reuse-values", async () => {
    const before = await release.values();
    await changeUnderStreams("operator upgrade", () =>
      release.upgrade("--reset-then-reuse-values", "--set", "logLevel=debug"),
    );
    expect(await release.values()).toEqual({ ...before, logLevel: "debug" });
    expect(await logsDebug()).toBe(true);
  });

  it("keeps its pods and streams when helm rollback restores the earlier values", async () => {
    await changeUnderStreams("rollback", () => release.rollback());
    expect(await release.values()).not.toHaveProperty("logLevel");
    expect(await logsDebug()).toBe(false);
  });

  it("has a working operator after upgrade and rollback, which applies a change", async () => {
    await deployed.patch({ api: { replicas: 1 } });
    await eventually("one API pod", async () => (await deployed.apiPods()).length === 1);
    await world.condition(name, "Ready", "True");
  });
});

describe("helm uninstall", () => {
  it("keeps TtsDeployments and their pods, and a new installation of the chart reconciles them", async () => {
    const before = await deployed.allPods();
    const uid = (await world.deployment(name))?.metadata.uid;
    const values = await release.values();
    await release.uninstall();
    expect((await world.deployment(name))?.metadata.uid).toBe(uid);
    expect(await world.speak(name, body)).toMatchObject({ status: 200 });
    await release.install(values);
    // Only the new operator can apply this change, so two API pods show that it has reconciled.
    await deployed.patch({ api: { replicas: 2 } });
    await eventually("two API pods", async () => (await deployed.apiPods()).length === 2);
    await world.condition(name, "Ready", "True");
    expect((await world.deployment(name))?.metadata.uid).toBe(uid);
    expect(await deployed.allPods()).toEqual(expect.arrayContaining(before));
  });
});
