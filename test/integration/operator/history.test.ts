/** Tests the history of pools, rollbacks and the commands for them on a real API server. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, inject, it } from "vitest";
import { childEnvironment } from "../../../lib/child-processes.ts";
import type { RevisionLine } from "../../../operator/cli/history.ts";
import { type OperatorHouse, useOperatorHouse } from "../../support/operator/operator-house.ts";

const { kubeconfigPath } = inject("controlPlane");
const main = join(import.meta.dirname, "../../../operator/main.ts");

let house: OperatorHouse;

useOperatorHouse((opened) => {
  house = opened;
});

const mist = (streams: number, rollout: object = {}) => [
  { name: "mist", kind: "mist", replicas: 1, maxConcurrentStreams: streams, rollout },
];

const command = (...words: string[]) => commandWith(kubeconfigPath, ...words);

async function commandWith(kubeconfig: string, ...words: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [main, ...words, "-n", house.namespace, "--kubeconfig", kubeconfig],
    { env: { ...childEnvironment(), PATH: process.env.PATH } },
  );
  return stdout;
}

/** Writes a kubeconfig with the rights of the operator. Returns its path. */
async function kubeconfigOfOperator(folder: string): Promise<string> {
  const path = join(folder, "operator.kubeconfig");
  const config = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "c" },
    clusters: [
      { name: "c", cluster: { server: house.proxy.server.origin, "insecure-skip-tls-verify": true } },
    ],
    users: [{ name: "u", user: {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

async function history(): Promise<RevisionLine[]> {
  return JSON.parse(await command("history", "demo", "mist", "-o", "json")) as RevisionLine[];
}

const status = async () => (await house.pool("demo-mist")).status;

async function streamsOf(): Promise<string | undefined> {
  const { template } = (await house.workload("demo-mist")).spec ?? {};
  return template?.spec?.containers[0]?.env?.find(({ name }) => name.endsWith("MAX_CONCURRENT_STREAMS"))
    ?.value;
}

/** Waits until the history contains the current revision, and returns the revision. */
async function recorded(streams: number): Promise<string> {
  await house.until(async () => (await streamsOf()) === String(streams), `pods with ${streams} streams`);
  await house.serve("demo-mist");
  let revision = "";
  await house.until(async () => {
    const { models } = (await house.deployment()).status ?? {};
    revision = models?.[0]?.recordedRevision ?? "";
    const { metadata, status } = await house.pool("demo-mist");
    // Until the operator writes the status of this generation, the status describes the previous revision.
    if (status?.observedGeneration !== metadata.generation) return false;
    const { currentRevision, updateRevision } = status;
    return revision !== "" && currentRevision === updateRevision && revision === currentRevision;
  }, "the revision is recorded");
  await house.idle();
  return revision;
}

/** Rolls out these numbers of streams, and returns their revisions. */
async function rollOut(numbers: readonly number[], rollout: object = {}): Promise<string[]> {
  const [first = 16, ...later] = numbers;
  await house.ready({}, mist(first, rollout));
  const revisions = [await recorded(first)];
  for (const streams of later) {
    await house.putDeployment({}, mist(streams, rollout));
    revisions.push(await recorded(streams));
  }
  return revisions;
}

const setRollback = (revision: string) =>
  house.kubectl(
    ...["patch", "ttsd", "demo", "--type=json", "-p"],
    JSON.stringify([{ op: "add", path: "/spec/models/0/rollout/rollbackTo", value: revision }]),
  );

describe("the history of a pool", () => {
  it("lists the revisions with their changed fields, and keeps as many as revisionHistoryLimit", async () => {
    const revisions = await rollOut([16, 4, 8, 2], { revisionHistoryLimit: 3 });
    const lines = await history();
    expect(lines.map(({ revision, number, isCurrent }) => [revision, number, isCurrent])).toEqual([
      [revisions[3], 4, true],
      [revisions[2], 3, false],
      [revisions[1], 2, false],
    ]);
    expect(lines[0]).toMatchObject({ model: "mist", changed: ["maxConcurrentStreams"] });
    expect(await command("history", "demo")).toMatch(
      new RegExp(`^MODEL .*\\nmist +4 +${revisions[3]} +\\S+ +yes +maxConcurrentStreams`),
    );
    expect(await house.kubectl("get", "ttsmp")).toMatch(new RegExp(`REVISION.*\\n.*${revisions[3]}`));
    expect(await house.writesDuring(1_000)).toBe(0);
  });

  it("belongs to its pool, so Kubernetes deletes it with the pool", async () => {
    await rollOut([16]);
    const found = await house.admin.list("ControllerRevision", { namespace: house.namespace });
    const { uid } = (await house.pool("demo-mist")).metadata;
    expect(found.map(({ metadata }) => metadata.ownerReferences?.[0])).toMatchObject([
      { kind: "TtsModelPool", uid, controller: true },
    ]);
  });
});

describe("rollbackTo", () => {
  it("returns to the pod template of an earlier operator, although a restart was requested since", async () => {
    const [first = ""] = await rollOut([16]);
    const before = (await house.workload("demo-mist")).spec?.template;
    await house.restart({ image: "registry.example/svc-tts/server:0.2.0" });
    await house.kubectl("annotate", "ttsd/demo", "tts.svc.dev/restart=now");
    await house.until(async () => (await status())?.updateRevision !== first, "the restart");
    const second = await recorded(16);
    await setRollback(first);
    await house.until(async () => (await status())?.updateRevision === first, "the rollback");
    expect((await house.workload("demo-mist")).spec?.template).toEqual(before);
    await recorded(16);
    expect((await history()).map(({ revision, number }) => [revision, number])).toEqual([
      [first, 3],
      [second, 2],
    ]);
    const events = await house.kubectl("get", "events.events.k8s.io", "-o", "jsonpath={.items[*].reason}");
    expect(events).toContain("RollbackStarted");
    await house.serve("demo-api");
    await house.untilReady();
    expect(await house.writesDuring(1_000)).toBe(0);
  });

  it("needs neither the canary nor the maintenance window", async () => {
    const hour = (new Date().getUTCHours() + 12) % 24;
    const [first = ""] = await rollOut([16, 4]);
    const canary = { steps: [{ weight: 10, pauseSeconds: 600 }] };
    const maintenanceWindow = { start: `${String(hour).padStart(2, "0")}:00`, duration: "1h" };
    await house.putDeployment({}, mist(4, { canary, maintenanceWindow, rollbackTo: first }));
    expect(await recorded(16)).toBe(first);
    expect((await status())?.canary).toBeUndefined();
    // Without rollbackTo, the settings of the model apply again, and roll out as any other change.
    await house.putDeployment({}, mist(4, { canary, maintenanceWindow }));
    await house.untilCondition("RolloutHealthy", /^True AwaitingMaintenanceWindow/);
    expect(await streamsOf()).toBe("16");
  });

  it("ignores the other settings of the model, and applies a change of them when it is removed", async () => {
    const [first = ""] = await rollOut([16, 4]);
    await house.putDeployment({}, mist(2, { rollbackTo: first }));
    expect(await recorded(16)).toBe(first);
    await house.putDeployment({}, mist(2));
    await recorded(2);
  });

  it("that names no revision of the history changes nothing, and the condition says so", async () => {
    await rollOut([16]);
    await house.putDeployment({}, mist(4, { rollbackTo: "0123456789" }));
    await house.untilCondition(
      "Stalled",
      /^True RevisionNotFound: spec\.models\[0\]\.rollout\.rollbackTo is 0123456789/,
    );
    await house.idle();
    expect(await streamsOf()).toBe("16");
    expect((await house.pool("demo-mist")).spec.maxConcurrentStreams).toBe(16);
    await house.putDeployment({}, mist(4));
    await recorded(4);
    await house.untilReady();
  });

  it("ignores a revision whose pod template was changed by hand", async () => {
    const [first = ""] = await rollOut([16, 4]);
    const name = `demo-mist-${first}`;
    const stored = await house.mustGet("ControllerRevision", name);
    const template = stored.metadata.annotations?.["tts.svc.dev/pod-template"]?.replace("mist", "forged");
    await house.kubectl(
      "annotate",
      "controllerrevision",
      name,
      "--overwrite",
      `tts.svc.dev/pod-template=${template}`,
    );
    await setRollback(first);
    await house.untilCondition("Stalled", /^True RevisionNotFound/);
    expect(await streamsOf()).toBe("4");
  });
});

describe("the command rollback", () => {
  it("returns to the previous revision, to a named one, and back to the settings of the model", async () => {
    const [first = "", second = ""] = await rollOut([16, 4]);
    expect(await command("rollback", "demo", "mist")).toContain(`returns to revision ${first}`);
    expect(await recorded(16)).toBe(first);
    await command("rollback", "demo", "mist", "--to", second);
    expect(await recorded(4)).toBe(second);
    await command("rollback", "demo", "mist", "--to", first);
    await recorded(16);
    expect(await command("rollback", "demo", "mist", "--cancel")).toContain("apply again");
    expect(await recorded(4)).toBe(second);
    await expect(command("rollback", "demo", "mist", "--to", "0123456789")).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`its revisions are: ${second}, ${first}`),
    });
  });

  it("prints the kubectl command if the user may not patch the TtsDeployment", async () => {
    const [first = ""] = await rollOut([16, 4]);
    const folder = await mkdtemp(join(tmpdir(), "svc-tts-rollback-"));
    const kubeconfig = await kubeconfigOfOperator(folder);
    const failed = await commandWith(kubeconfig, "rollback", "demo", "mist").catch((error: unknown) => error);
    await rm(folder, { recursive: true });
    expect(failed).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("you may not change TtsDeployment demo"),
    });
    const { stdout } = failed as { stdout: string };
    const printed = /^kubectl patch ttsdeployment demo -n (\S+) --type=json -p '(.*)'\n$/.exec(stdout);
    expect(printed?.[1]).toBe(house.namespace);
    await house.kubectl("patch", "ttsdeployment", "demo", "--type=json", "-p", printed?.[2] ?? "");
    expect(await recorded(16)).toBe(first);
  });
});
