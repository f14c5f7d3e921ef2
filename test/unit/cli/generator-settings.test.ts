import { expect, test } from "vitest";
import { readModelSettings } from "../../../server/cli/settings/settings.ts";

const vllm = { SVC_TTS_ARCANA_GENERATOR: "vllm" };

test("a model that vLLM serves is run by the process itself, from the default folder, with measured capacity", () => {
  expect(readModelSettings("arcana", vllm)).toMatchObject({
    generator: "vllm",
    model: {
      folder: "/var/lib/svc-tts/models",
      server: { kind: "here", program: "vllm", args: [], port: undefined },
      startSeconds: 900,
      hangSeconds: 10,
      capacity: undefined,
      codec: { providers: ["cpu"] },
    },
  });
  expect(readModelSettings("mist", vllm).model).toBeUndefined();
});

test("vLLM gets its own environment and arguments, without those of the server", () => {
  const environment = {
    ...vllm,
    PATH: "/bin",
    VLLM_CPU_KVCACHE_SPACE: "4",
    VLLM_PORT: "tcp://10.0.0.9:8000", // the variables that Kubernetes sets for a Service named vllm
    VLLM_SERVICE_HOST: "10.0.0.9",
    SVC_TTS_API_KEY: "secret",
    GENERATOR_VLLM_ARGS: " --dtype bfloat16  --swap-space 0 ",
    GENERATOR_VLLM_PORT: "8001",
  };
  expect(readModelSettings("arcana", environment).model?.server).toEqual({
    kind: "here",
    program: "vllm",
    args: ["--dtype", "bfloat16", "--swap-space", "0"],
    environment: { PATH: "/bin", VLLM_CPU_KVCACHE_SPACE: "4" },
    port: undefined,
    metricsPort: 8001,
    apiKey: undefined,
  });
});

test("a vLLM that runs elsewhere is only sent requests", () => {
  const elsewhere = { ...vllm, GENERATOR_URL: "http://vllm:8000/", GENERATOR_API_KEY: "k", PATH: "/bin" };
  expect(readModelSettings("arcana", elsewhere).model?.server).toEqual({
    kind: "elsewhere",
    url: "http://vllm:8000",
    apiKey: "k",
  });
});

test("the default folder of mounted voices is none if it holds the model", () => {
  const environment = { ...vllm, SVC_TTS_VOICES_DIR: "/models", GENERATOR_MODEL_DIR: "/models/big" };
  expect(readModelSettings("arcana", environment).voices).toMatchObject({
    folder: "/models",
    except: "/models/big",
  });
});

test.each([
  [
    { GENERATOR_URL: "vllm:8000" },
    'GENERATOR_URL must be an address such as http://vllm:8000; it is "vllm:8000".',
  ],
  [{ GENERATOR_VLLM_PORT: "http" }, "GENERATOR_VLLM_PORT must be an integer from 1 to 65535"],
  [{ GENERATOR_CAPACITY: "0" }, "GENERATOR_CAPACITY must be an integer from 1"],
  [
    { GENERATOR_CODEC_PROVIDERS: "tpu" },
    'GENERATOR_CODEC_PROVIDERS must list cpu, cuda separated by commas; it contains "tpu".',
  ],
])("%o is refused by name and value, with the allowed values", (environment, says) => {
  expect(() => readModelSettings("arcana", { ...vllm, ...environment })).toThrow(says);
});
