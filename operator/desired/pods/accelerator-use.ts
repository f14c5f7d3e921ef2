import { generatorEnv, env as names } from "../../../config/contract/names.ts";
import type { ModelSpec } from "../../../crds/tts-deployment.ts";
import type { TtsModelPool } from "../../facts/observed.ts";
import { runsVllm } from "./arcana-engine.ts";

type EngineSettings = Pick<TtsModelPool["spec"], "kind" | "engine" | "env" | "resources">;

/** The variables that make ONNX Runtime use a GPU, if their value contains `cuda`. */
const providers: readonly string[] = [names.voicesProviders, generatorEnv.codecProviders];

/**
 * Returns whether a pool reserves an accelerator that no program of its pods uses. The result is false if the
 * operator cannot determine the use, because an image of the user, a value from a Secret, or a podTemplate
 * may select a GPU.
 */
export function wastesAccelerator(model: ModelSpec): boolean {
  if (model.accelerator === undefined) return false;
  const { env = [], image, engine, podTemplate } = model;
  const startsVllm = runsVllm(model) && !env.some(({ name }) => name === generatorEnv.generatorUrl);
  const usesCuda = env.some(
    ({ name, value }) => providers.includes(name) && (value === undefined || value.includes("cuda")),
  );
  if (startsVllm || usesCuda) return false;
  if (podTemplate !== undefined && mayConfigureEngine(JSON.stringify(podTemplate))) return false;
  if (env.some(({ name, value }) => name === names.arcanaGenerator && value === undefined)) return false;
  return image === undefined || engine?.type === "mini" || engine?.type === "flite";
}

/** Returns whether a podTemplate may select another image or an engine. */
function mayConfigureEngine(podTemplate: string): boolean {
  return [names.arcanaGenerator, ...providers, '"image"', '"envFrom"'].some((text) =>
    podTemplate.includes(text),
  );
}

/**
 * Returns the resources of the model container. The default of the schema fits the engines of the image. The
 * engines vLLM and Kokoro need more, so the operator sets other requests for them if the user sets none. The
 * spec of the pool does not contain these requests, so that an upgrade does not replace the pods.
 */
export function engineResources(model: EngineSettings): EngineSettings["resources"] {
  const { requests, limits } = model.resources;
  const isDefault =
    limits === undefined &&
    requests?.cpu === defaultRequests.cpu &&
    requests.memory === defaultRequests.memory;
  if (!isDefault || Object.keys(requests).length > 2) return model.resources;
  const isElsewhere = model.env?.some(({ name }) => name === generatorEnv.generatorUrl) ?? false;
  if (runsVllm(model)) return isElsewhere ? model.resources : { requests: vllmRequests };
  return model.engine?.type === "kokoro" ? { requests: kokoroRequests } : model.resources;
}

/** The default of `models[].resources` in the CRD. */
const defaultRequests = { cpu: "100m", memory: "512Mi" };
/**
 * The requests of vLLM, which runs two busy processes, and loads the weights into main memory before it
 * copies them to the GPU.
 */
const vllmRequests = { cpu: "2", memory: "8Gi" };
/** The requests of Kokoro. Two streams use two cores, and each process needs 570 MB. */
const kokoroRequests = { cpu: "2", memory: "2Gi" };
