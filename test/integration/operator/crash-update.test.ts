import { it } from "vitest";
import { crashModels, crashSpec, useCrashHouse } from "../../support/operator/crash-house.ts";

const crashes = useCrashHouse();

/**
 * An update with many changes: a rollout, a removed pool, a new pool, another scaling provider, deleted
 * optional children, and a new token.
 */
const after = {
  spec: { api: { replicas: 3 } },
  models: [
    { name: "mist", kind: "mist", maxConcurrentStreams: 5 },
    { name: "new", kind: "arcana", replicas: 1 },
  ],
};

async function prepare(): Promise<void> {
  await crashes.life();
  await crashes.house.putDeployment(crashSpec, crashModels);
  await crashes.house.until(() => crashes.isSettled(), "the state before");
  await crashes.house.stopOperator();
}

async function update(): Promise<void> {
  await crashes.house.putDeployment(after.spec, after.models);
  await crashes.house.kubectl("annotate", "ttsd/demo", "--overwrite", "tts.svc.dev/rotate-token=now");
}

it(
  "if the operator is killed after any write of an update, the next operator reaches the same state and deletes no object that serves",
  () => crashes.comesToTheSameEnd(prepare, update),
  1_200_000,
);
