import { expect, test } from "vitest";
import { readModelSettings } from "../../../server/cli/settings/settings.ts";

const vllm = { SVC_TTS_ARCANA_GENERATOR: "vllm" };

test("the generator vllm starts vLLM in the pod, with the default folder and a measured capacity", () => {
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

test("vLLM gets its own environment variables and arguments, but not the variables of the server", () => {
  const environment = {
    ...vllm,
    PATH: "/bin",
    VLLM_CPU_KVCACHE_SPACE: "4",
    VLLM_PORT: "tcp://10.0.0.9:8000", // Kubernetes sets such variables for a Service named vllm.
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

test("GENERATOR_URL selects a vLLM that already runs at that URL", () => {
  const elsewhere = { ...vllm, GENERATOR_URL: "http://vllm:8000/", GENERATOR_API_KEY: "k", PATH: "/bin" };
  expect(readModelSettings("arcana", elsewhere).model?.server).toEqual({
    kind: "elsewhere",
    url: "http://vllm:8000",
    apiKey: "k",
  });
});

test("the folder of mounted voices excludes the folder of the generator's model", () => {
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
])(
  "%o is refused, and the message names the variable, the value and the allowed values",
  (environment, message) => {
    expect(() => readModelSettings("arcana", { ...vllm, ...environment })).toThrow(message);
  },
);
