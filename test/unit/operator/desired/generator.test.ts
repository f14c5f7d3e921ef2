import { describe, expect, it } from "vitest";
import { engineVariables, runsVllm } from "../../../../operator/desired/pods/arcana-engine.ts";

const kind = "arcana";

describe("the engine of a pool", () => {
  it("is set by variables of the container, with the flags of vLLM in a stable order", () => {
    const parameters = { "max-model-len": "4096", "enforce-eager": "", dtype: "bfloat16" };
    expect(engineVariables({ kind, engine: { type: "vllm", parameters } })).toEqual({
      SVC_TTS_ARCANA_GENERATOR: "vllm",
      GENERATOR_VLLM_ARGS: "--dtype=bfloat16 --enforce-eager --max-model-len=4096",
    });
    expect(engineVariables({ kind, engine: { type: "flite" } })).toEqual({
      SVC_TTS_ARCANA_GENERATOR: "flite",
    });
  });

  it("sets no variable by default, so that existing pods stay unchanged", () => {
    expect(engineVariables({ kind })).toEqual({});
  });

  it("is vLLM if the field or the variable selects it for arcana", () => {
    const env = [{ name: "SVC_TTS_ARCANA_GENERATOR", value: "vllm" }];
    expect(runsVllm({ kind, engine: { type: "vllm" } })).toBe(true);
    expect(runsVllm({ kind, env })).toBe(true);
    expect(runsVllm({ kind, engine: { type: "mini" } })).toBe(false);
    expect(runsVllm({ kind })).toBe(false);
    expect(runsVllm({ kind: "mist", env })).toBe(false);
  });
});
