import { expect, it } from "vitest";
import { Engines } from "../../../server/engine/engines.ts";
import type { MountedVoices } from "../../../server/engine/neural/mounted-voices.ts";
import type { Engine } from "../../../server/engine/runtime/engine.ts";
import type { VllmEngine } from "../../../server/engine/vllm/engine.ts";

const keepsDying = { name: "espeak", healthy: () => false } as Engine;
const well = { name: "vllm", healthy: () => true } as VllmEngine;

it("a generator is ready without eSpeak NG, and mounted voices are not", () => {
  const engines = new Map([["espeak", keepsDying]] as const);
  expect(new Engines(engines, [], undefined, well).healthy()).toBe(true);
  expect(new Engines(engines, [], {} as MountedVoices, well).healthy()).toBe(false);
  expect(new Engines(engines, []).healthy()).toBe(false);
});
