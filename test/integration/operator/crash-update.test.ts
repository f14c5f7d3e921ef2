import { inject, it } from "vitest";
import { clusterRequestOrThrow } from "../../support/cluster-request.ts";
import { useCrashHouse } from "../../support/crash-house.ts";

const crashes = useCrashHouse();

const before = {
  spec: {
    networkPolicy: { enabled: true },
    api: { replicas: 2, route: { hostnames: ["tts.example.com"], ingress: {} } },
  },
  models: [
    { name: "mist", kind: "mist", replicas: 2 },
    { name: "old", kind: "mist" },
  ],
};

/** Everything at once: a rollout, a pool that goes, one that comes, replicas handed over, optional children taken back, a new token. */
const after = {
  spec: { api: { replicas: 3 } },
  models: [
    { name: "mist", kind: "mist", maxConcurrentStreams: 5 },
    { name: "new", kind: "arcana", replicas: 1 },
  ],
};

async function prepare(): Promise<void> {
  await crashes.life();
  await crashes.house.putDeployment(before.spec, before.models);
  await crashes.house.until(() => crashes.isSettled(), "the state before");
  await crashes.house.stopOperator();
}

async function update(): Promise<void> {
  await crashes.house.putDeployment(after.spec, after.models);
  await clusterRequestOrThrow(inject("controlPlane"), {
    method: "PATCH",
    path: `/apis/tts.svc.dev/v1alpha1/namespaces/${crashes.house.namespace}/ttsdeployments/demo`,
    body: { metadata: { annotations: { "tts.svc.dev/rotate-token": "now" } } },
    type: "application/merge-patch+json",
  });
}

it(
  "an operator that dies after any write of an update is followed by one that comes to the same end, and deletes nothing that serves",
  () => crashes.comesToTheSameEnd(prepare, update),
  1_200_000,
);
