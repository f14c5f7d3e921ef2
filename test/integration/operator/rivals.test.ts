import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OperatorHouse } from "../../support/operator-house.ts";

/** Two releases of the operator that serve one namespace. */

let house: OperatorHouse;

beforeEach(async () => {
  house = await OperatorHouse.open();
  await house.stopOperator();
});

afterEach(async () => {
  await house[Symbol.asyncDispose]();
});

const image = (version: string) => `registry.example/svc-tts/server:${version}`;
const conflict = /^False OperatorConflict: .*by their Leases one\/tts-operator and two\/tts-operator/;

const signer = async () => ((await house.deployment()).status as { operator?: string } | undefined)?.operator;

describe("two operators of one namespace", () => {
  it.each([
    ["the first was there before", "one/tts-operator", "two/tts-operator"],
    ["the second was there before", "two/tts-operator", "one/tts-operator"],
  ])("say so, and come to rest with one of them at work, when %s", async (_when, before, after) => {
    await house.startOperator({ release: before, image: image("1") });
    await house.ready();
    expect(await house.condition("SoleOperator")).toBe("absent");
    await house.startOperator({ release: after, image: image("2") });
    // something to do, so that each of them has a word to say
    await house.putDeployment({ api: { replicas: 2 } });
    await house.serve("demo-api");
    await house.until(async () => conflict.test(await house.condition("SoleOperator")), "the condition");
    await house.until(async () => (await signer()) === "one/tts-operator", "the first");
    await house.idle();
    const writes = house.proxy.count("write");
    await house.advance(1_500);
    expect(house.proxy.count("write")).toBe(writes);
    expect(await house.condition("SoleOperator")).toMatch(conflict);
    expect(await signer()).toBe("one/tts-operator");
    expect(house.lines.join("\n")).toContain("another operator serves this namespace too");
  });

  it("are no news where one took over from another that is gone", async () => {
    await house.startOperator({ release: "two/tts-operator" });
    await house.ready();
    await house.stopOperator();
    await house.startOperator({ release: "one/tts-operator" });
    await house.until(async () => (await signer()) === "one/tts-operator", "the next");
    await house.idle();
    expect(await house.condition("SoleOperator")).toBe("absent");
  });
});
