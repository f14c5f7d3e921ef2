import { it } from "vitest";
import { crashModels, crashSpec, useCrashHouse } from "../../support/operator/crash-house.ts";

const crashes = useCrashHouse();

it(
  "after the death of the operator at any write of a creation, the next operator reaches the same state and deletes no serving object",
  () =>
    crashes.comesToTheSameEnd(
      async () => undefined,
      () => crashes.house.putDeployment(crashSpec, crashModels),
    ),
  1_200_000,
);
