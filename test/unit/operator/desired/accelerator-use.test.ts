import { describe, expect, it } from "vitest";
import { engineResources, wastesAccelerator } from "../../../../operator/desired/pods/accelerator-use.ts";
import { acceleratorFinding } from "../../../../operator/status/optional-conditions.ts";
import { ttsDeployment } from "../../../support/operator/observed.ts";

const accelerator = { count: 1 };
const image = "registry.example/arcana:1";
const cuda = [{ name: "SVC_TTS_VOICES_PROVIDERS", value: "cuda,cpu" }];
const fromSecret = { secretKeyRef: { name: "s", key: "k" } };

function model(spec: object) {
  const [complete] = ttsDeployment({}, [{ name: "m", kind: "arcana", ...spec }]).spec.models;
  if (!complete) throw new Error("the deployment has no model");
  return complete;
}

describe("an accelerator", () => {
  it.each<[string, object, boolean]>([
    ["with the default engine of the operator's image", { accelerator }, true],
    ["with the engine mini in an image of the user", { accelerator, image, engine: { type: "mini" } }, true],
    ["of a mist pool", { kind: "mist", accelerator }, true],
    [
      "with a vLLM that runs elsewhere",
      { accelerator, engine: { type: "vllm" }, env: [{ name: "GENERATOR_URL", value: "http://vllm" }] },
      true,
    ],
    [
      "with providers without CUDA",
      { accelerator, env: [{ name: "SVC_TTS_VOICES_PROVIDERS", value: "cpu" }] },
      true,
    ],
    ["that no pool reserves", {}, false],
    ["with vLLM", { accelerator, image, engine: { type: "vllm" } }, false],
    [
      "with vLLM by a variable",
      { accelerator, env: [{ name: "SVC_TTS_ARCANA_GENERATOR", value: "vllm" }] },
      false,
    ],
    ["with CUDA for mounted voices", { kind: "mist", accelerator, env: cuda }, false],
    [
      "with CUDA for the codec of a vLLM elsewhere",
      {
        accelerator,
        engine: { type: "vllm" },
        env: [
          { name: "GENERATOR_URL", value: "http://vllm" },
          { name: "GENERATOR_CODEC_PROVIDERS", value: "cuda,cpu" },
        ],
      },
      false,
    ],
    [
      "with an engine from a Secret",
      { accelerator, env: [{ name: "SVC_TTS_ARCANA_GENERATOR", valueFrom: fromSecret }] },
      false,
    ],
    ["with an image of the user, whose engine is not known", { accelerator, image }, false],
    [
      "with a podTemplate that sets the engine",
      { accelerator, podTemplate: { spec: { containers: [{ name: "arcana", env: cuda }] } } },
      false,
    ],
  ])("%s is reported as unused: %#", (_, spec, expected) => {
    expect(wastesAccelerator(model(spec))).toBe(expected);
  });

  it("without use is reported by a condition that names the pool and the remedy", () => {
    const deployment = ttsDeployment({}, [
      { name: "wasteful", kind: "arcana", accelerator },
      { name: "mist", kind: "mist" },
    ]);
    expect(acceleratorFinding({ deployment })).toEqual([
      {
        type: "AcceleratorsUsed",
        status: "False",
        reason: "AcceleratorUnused",
        message: expect.stringMatching(
          /^These pools reserve an accelerator, .*: wasteful\. Set engine\.type to vllm/,
        ),
      },
    ]);
    expect(acceleratorFinding({ deployment: ttsDeployment() })).toEqual([]);
  });
});

describe("the resources of a pool", () => {
  const vllm = { engine: { type: "vllm" }, image };
  it.each<[string, object, object]>([
    ["without an engine have the default of the schema", {}, { requests: { cpu: "100m", memory: "512Mi" } }],
    ["with vLLM fit its processes", vllm, { requests: { cpu: "2", memory: "8Gi" } }],
    [
      "with a vLLM elsewhere have the default",
      { ...vllm, env: [{ name: "GENERATOR_URL", value: "http://v" }] },
      { requests: { cpu: "100m", memory: "512Mi" } },
    ],
    [
      "with Kokoro fit its processes",
      { engine: { type: "kokoro" }, cache: { emptyDir: {} } },
      { requests: { cpu: "2", memory: "2Gi" } },
    ],
    [
      "of the user stay unchanged",
      { ...vllm, resources: { requests: { cpu: "8" } } },
      { requests: { cpu: "8" } },
    ],
    [
      "with a limit stay unchanged",
      { ...vllm, resources: { requests: { cpu: "100m", memory: "512Mi" }, limits: { memory: "4Gi" } } },
      { requests: { cpu: "100m", memory: "512Mi" }, limits: { memory: "4Gi" } },
    ],
  ])("%s", (_, spec, expected) => {
    expect(engineResources(model(spec))).toEqual(expected);
  });
});
