import { describe, expect, it } from "vitest";
import {
  crashModels,
  crashPoints,
  crashSpec,
  type Fate,
  isWrite,
  useCrashHouse,
} from "../../support/operator/crash-house.ts";

const crashes = useCrashHouse();

const create = () => crashes.house.putDeployment(crashSpec, crashModels);

/** Waits until the garbage collector has deleted all children. */
async function allDeleted(): Promise<void> {
  const isGone = async () =>
    (await crashes.house.get("TtsDeployment", "demo")) === undefined && (await crashes.family()).length === 0;
  await crashes.house.until(isGone, "an empty namespace");
}

/**
 * Creates the TtsDeployment with an operator that crashes after its n-th write. The operator does not crash
 * if it needs fewer writes.
 */
async function interruptedCreate(n: number): Promise<Fate> {
  const death = crashes.dieAfter(n);
  await crashes.life();
  await create();
  return crashes.fateOf(death, () => crashes.isSettled());
}

describe("the deletion of a TtsDeployment", () => {
  it("removes all children while no operator runs, and the next operator writes nothing", async () => {
    const { house } = crashes;
    for (const n of crashPoints()) {
      if ((await interruptedCreate(n)) === "survived") break;
      crashes.bury();
      const ref = { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsDeployment", name: "demo" };
      const propagation = n % 2 === 0 ? "Background" : "Foreground";
      await house.admin.remove({ ...ref, namespace: house.namespace }, { propagation });
      await crashes.life();
      await allDeleted();
      expect(crashes.requests.filter(isWrite)).toEqual([]);
      await house.stopOperator();
    }
    await crashes.sweep();
  }, 1_200_000);

  it("removes all children, also if it interrupts the creation at any write", async () => {
    const { house } = crashes;
    for (const n of crashPoints()) {
      const { promise: removal, resolve: removed } = Promise.withResolvers<void>();
      let writes = 0;
      crashes.rule = (request) => {
        if (isWrite(request) && ++writes === n)
          void house.remove("TtsDeployment", "demo").then(() => removed());
        return undefined;
      };
      await crashes.life();
      await create();
      await house.until(async () => writes >= n || (await crashes.isSettled()), "the deletion, or the end");
      const wasMade = writes < n;
      if (wasMade) await house.remove("TtsDeployment", "demo");
      else await removal;
      await allDeleted();
      crashes.bury();
      if (wasMade) break;
    }
  }, 1_200_000);
});
