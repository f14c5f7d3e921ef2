import { it } from "vitest";
import { crashModels, crashSpec, useCrashHouse } from "../../support/operator/crash-house.ts";

const crashes = useCrashHouse();

it(
  "if the operator is killed after any write of a creation, the next operator reaches the same state and deletes no object that serves",
  () =>
    crashes.comesToTheSameEnd(
      async () => undefined,
      () => crashes.house.putDeployment(crashSpec, crashModels),
    ),
  1_200_000,
);
