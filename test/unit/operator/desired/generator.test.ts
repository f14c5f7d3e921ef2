import { describe, expect, it } from "vitest";
import { engineVariables, runsVllm } from "../../../../operator/desired/pods/arcana-engine.ts";

const kind = "arcana";

describe("the engine of a pool", () => {
  it("is a variable of the container, with the flags of vLLM in a stable order", () => {
    const parameters = { "max-model-len": "4096", "enforce-eager": "", dtype: "bfloat16" };
    expect(engineVariables({ kind, engine: { type: "vllm", parameters } })).toEqual({
      SVC_TTS_ARCANA_GENERATOR: "vllm",
      GENERATOR_VLLM_ARGS: "--dtype=bfloat16 --enforce-eager --max-model-len=4096",
    });
    expect(engineVariables({ kind, engine: { type: "flite" } })).toEqual({
      SVC_TTS_ARCANA_GENERATOR: "flite",
    });
  });

  it("is that of the image by default, so that pods stay unchanged", () => {
    expect(engineVariables({ kind })).toEqual({});
  });

  it("has its own metrics if it is vLLM, by field or variable", () => {
    const env = [{ name: "SVC_TTS_ARCANA_GENERATOR", value: "vllm" }];
    expect(runsVllm({ kind, engine: { type: "vllm" } })).toBe(true);
    expect(runsVllm({ kind, env })).toBe(true);
    expect(runsVllm({ kind, engine: { type: "mini" } })).toBe(false);
    expect(runsVllm({ kind })).toBe(false);
    expect(runsVllm({ kind: "mist", env })).toBe(false);
  });
});
