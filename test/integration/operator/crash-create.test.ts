import { it } from "vitest";
import { crashModels, crashSpec, useCrashHouse } from "../../support/operator/crash-house.ts";

const crashes = useCrashHouse();

it(
  "an operator that dies after any write of a create is followed by one that comes to the same end, and deletes nothing that serves",
  () =>
    crashes.comesToTheSameEnd(
      async () => undefined,
      () => crashes.house.putDeployment(crashSpec, crashModels),
    ),
  1_200_000,
);
