import { it } from "vitest";
import { useCrashHouse } from "../../support/crash-house.ts";

const crashes = useCrashHouse();

const spec = {
  networkPolicy: { enabled: true },
  api: { replicas: 2, route: { hostnames: ["tts.example.com"], ingress: {} } },
};
const models = [
  { name: "mist", kind: "mist", replicas: 2 },
  { name: "old", kind: "mist" },
];

it(
  "an operator that dies after any write of a create is followed by one that comes to the same end, and deletes nothing that serves",
  () =>
    crashes.comesToTheSameEnd(
      async () => undefined,
      () => crashes.house.putDeployment(spec, models),
    ),
  1_200_000,
);
