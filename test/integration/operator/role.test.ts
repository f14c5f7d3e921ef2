import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import type { Connection } from "../../../operator/cluster/connect.ts";
import { rulesOf } from "../../../operator/permissions.ts";
import { installCrds, kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

const address = inject("controlPlane");
const chart = join(import.meta.dirname, "../../../charts/tts-operator");
const clients: ClusterClient[] = [];

beforeAll(() => installCrds(address));

afterAll(() => {
  for (const client of clients) client.close();
});

/** The chart's roles and its ServiceAccount, applied; a client that holds them and nothing else. */
async function underTheChartsRole(namespace: string, watched: string[]): Promise<ClusterClient> {
  const values = ["--set", `watchNamespaces={${watched.join(",")}}`];
  const files = ["--show-only", "templates/rbac.yaml", "--show-only", "templates/serviceaccount.yaml"];
  const { stdout } = await promisify(execFile)(join(address.binDirectory, "helm"), [
    ...["template", `op-${namespace}`, chart, "--namespace", namespace, "--kube-version", "1.36.3"],
    ...(watched.length > 0 ? values : []),
    ...files,
  ]);
  await kubectlOrThrow(address, ["apply", "-n", namespace, "-f", "-"], stdout);
  const account = `op-${namespace}-tts-operator`.slice(0, 52);
  const token = (await kubectlOrThrow(address, ["create", "token", account, "-n", namespace])).trim();
  const connection: Connection = {
    server: new URL(address.server),
    namespace,
    credentials: async () => ({ headers: { authorization: `Bearer ${token}` }, tls: { ca: address.caPem } }),
    refresh: () => undefined,
  };
  const client = new ClusterClient(connection);
  clients.push(client);
  return client;
}

it.each([
  ["cluster-wide", (_namespace: string) => []],
  ["in the namespaces that it watches", (namespace: string) => [namespace]],
])("the chart's own role is enough for everything the operator does, %s", async (_where, watched) => {
  await using house = await OperatorHouse.open();
  await house.stopOperator();
  await house.startOperator({
    client: await underTheChartsRole(house.namespace, watched(house.namespace)),
    elected: true,
  });
  await house.ready({ api: { keys: { secretRef: { name: "license" } } } }, [
    { name: "mist", kind: "mist" },
    { name: "second", kind: "mist" },
  ]);
  await house.putDeployment();
  await house.until(
    async () => (await house.get("TtsModelPool", "demo-second")) === undefined,
    "the pruning",
  );
  await house.until(async () => {
    const events = await house.admin.list("Event", { namespace: house.namespace });
    return events.some(({ reason }) => reason === "Serving");
  }, "the event");
  expect(house.lines.filter((line) => /forbidden/i.test(line))).toEqual([]);
});

it("the chart's role deletes pools and nothing else: the rest goes with its owner", () => {
  const rules = [...rulesOf("workload"), ...rulesOf("own")];
  const deletable = rules.filter(({ verbs }) => verbs.includes("delete"));
  expect(deletable.map(({ resources }) => resources)).toEqual([["ttsmodelpools"]]);
});

it("the chart's role lets nobody list Secrets", async () => {
  await using house = await OperatorHouse.open();
  const client = await underTheChartsRole(house.namespace, []);
  await expect(client.list("Secret", { namespace: house.namespace })).rejects.toThrow(/403/);
});
