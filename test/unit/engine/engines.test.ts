import { expect, it } from "vitest";
import { Engines } from "../../../server/engine/engines.ts";
import type { MountedVoices } from "../../../server/engine/neural/mounted-voices.ts";
import type { Engine } from "../../../server/engine/runtime/engine.ts";
import type { VllmEngine } from "../../../server/engine/vllm/engine.ts";

const failingEspeak = { name: "espeak", healthy: () => false } as Engine;
const healthyVllm = { name: "vllm", healthy: () => true } as VllmEngine;

it("engines without eSpeak NG are healthy with only a generator, but not with mounted voices", () => {
  const engines = new Map([["espeak", failingEspeak]] as const);
  expect(new Engines(engines, [], undefined, healthyVllm).healthy()).toBe(true);
  expect(new Engines(engines, [], {} as MountedVoices, healthyVllm).healthy()).toBe(false);
  expect(new Engines(engines, []).healthy()).toBe(false);
});
