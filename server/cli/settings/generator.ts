import { generatorEnv, paths } from "../../../config/contract/names.ts";
import { rejectVllmArguments } from "../../../config/contract/vllm-flags.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import type { GeneratorSettings, ServerSettings } from "../../engine/vllm/settings.ts";
import { type Environment, readers } from "./environment.ts";
import { readProviders } from "./providers.ts";

/**
 * Matches the variables that vLLM must not receive: the server's own settings, which include secrets, and the
 * variables that Kubernetes sets for a Service named `vllm`. vLLM would read the variables of the Service as
 * its own settings.
 */
const notForVllm = /^(SVC_TTS_|GENERATOR_|VLLM_(PORT|SERVICE_))/u;

/**
 * Reads the settings of the generator. @throws UsageError with the variable, its value and the allowed
 * values.
 */
export function readGeneratorSettings(environment: Environment): GeneratorSettings {
  const { text, integer, optionalInteger } = readers(environment);
  return {
    folder: text(generatorEnv.modelDir) ?? paths.models,
    server: readServer(environment),
    startSeconds: integer(generatorEnv.startSeconds, 900, 10, 86_400),
    hangSeconds: integer(generatorEnv.hangSeconds, 10, 1, 3600),
    capacity: optionalInteger(generatorEnv.capacity, 1, 10_000),
    seed: optionalInteger(generatorEnv.seed, 0, 2 ** 31 - 1),
    codec: {
      providers: readProviders(environment, generatorEnv.codecProviders),
      processes: optionalInteger(generatorEnv.codecProcesses, 1, 256),
    },
  };
}

function readServer(environment: Environment): ServerSettings {
  const { text, optionalInteger } = readers(environment);
  const url = text(generatorEnv.generatorUrl);
  const apiKey = text(generatorEnv.generatorApiKey);
  if (url !== undefined) {
    if (!["http:", "https:"].includes(URL.parse(url)?.protocol ?? "")) {
      throw new UsageError(
        `${generatorEnv.generatorUrl} must be an address such as http://vllm:8000; it is ${JSON.stringify(url)}.`,
      );
    }
    return { kind: "elsewhere", url: url.replace(/\/+$/u, ""), apiKey };
  }
  const passed = Object.entries(environment).filter(([name]) => !notForVllm.test(name));
  return {
    kind: "here",
    program: text(generatorEnv.vllmProgram) ?? "vllm",
    args: readVllmArguments(text(generatorEnv.vllmArgs) ?? ""),
    environment: Object.fromEntries(
      passed.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    port: undefined,
    metricsPort: optionalInteger(generatorEnv.vllmPort, 1, 65_535),
    apiKey,
  };
}

/**
 * Reads the arguments of vLLM, and rejects arguments that the server sets itself. The operator writes
 * `engine.parameters` into the same variable. Objects that are older than the rule of the CRD need this check.
 */
function readVllmArguments(given: string): string[] {
  const args = given.split(/\s+/u).filter((argument) => argument !== "");
  const rejected = rejectVllmArguments(args);
  if (rejected !== undefined) throw new UsageError(`${generatorEnv.vllmArgs} ${rejected}.`);
  return args;
}
