import { afterEach, beforeEach, expect, it } from "vitest";
import { OperatorHouse } from "../../support/operator-house.ts";

let house: OperatorHouse;

beforeEach(async () => {
  house = await OperatorHouse.open();
});
afterEach(() => house[Symbol.asyncDispose]());

/** What had a pass, in order. */
function passes(): string[] {
  return house.lines.flatMap((line) => /^pass .*"key":"([^"]+)"/.exec(line)?.[1] ?? []);
}

it("an operator that starts looks first at what changed while there was none", async () => {
  await house.ready();
  const others = ["another", "before", "case"];
  for (const name of others) await house.putDeployment({}, undefined, name);
  for (const name of others)
    await house.until(async () => (await house.condition("LicenseValid", name)).startsWith("True"), name);
  await house.idle();
  await house.stopOperator();
  house.lines.length = 0;
  await house.putDeployment({ api: { replicas: 3 } });
  await house.startOperator({ workers: 1 });
  await house.until(async () => passes().length >= 3 * others.length, "passes over all");
  expect(passes()[0]).toBe(`TtsDeployment/${house.namespace}/demo`);
});
