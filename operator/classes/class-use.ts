import type { TtsClassSpec } from "../../crds/tts-class.ts";
import type { ModelSpec, TtsDeploymentSpec } from "../../crds/tts-deployment.ts";
import type { ClassViolation } from "./limits.ts";

/** The pods and devices that count towards the sums of a class. */
export interface ClassUse {
  readonly replicas: number;
  readonly gpus: number;
}

export const noUse: ClassUse = { replicas: 0, gpus: 0 };

export function addUse(one: ClassUse, other: ClassUse): ClassUse {
  return { replicas: one.replicas + other.replicas, gpus: one.gpus + other.gpus };
}

/** Returns the highest number of pods and devices that the spec can request. */
export function useOfSpec({ api, models }: TtsDeploymentSpec): ClassUse {
  const pools = models.map((model) => {
    const replicas = highestReplicas(model) ?? 0;
    return { replicas, gpus: replicas * (model.accelerator?.count ?? 0) };
  });
  const apiTier = { replicas: api.scaling?.maxReplicas ?? api.replicas, gpus: 0 };
  return [apiTier, ...pools].reduce(addUse, noUse);
}

/** Returns the highest number of replicas. It is undefined if the spec does not limit the number. */
function highestReplicas({ replicas, scaling }: ModelSpec): number | undefined {
  return replicas ?? scaling?.maxReplicas;
}

/** Returns whether the first use is at most the second use in every sum. */
export function isAtMost(one: ClassUse, other: ClassUse): boolean {
  return one.replicas <= other.replicas && one.gpus <= other.gpus;
}

/**
 * Returns the sums of a namespace that the spec exceeds. `elsewhere` is the use of the other TtsDeployments of
 * the class in the namespace.
 */
export function exceededSums(
  spec: TtsDeploymentSpec,
  { maxReplicasPerNamespace, maxGpusPerNamespace }: TtsClassSpec["limits"],
  elsewhere: ClassUse,
): ClassViolation[] {
  const own = useOfSpec(spec);
  return [
    ...exceeded("pods", own.replicas, elsewhere.replicas, maxReplicasPerNamespace),
    ...exceeded("devices", own.gpus, elsewhere.gpus, maxGpusPerNamespace),
  ];
}

/** Returns a violation for each pool whose replicas the spec does not limit, if the class limits a sum of them. */
export function unlimitedPools(
  { models }: TtsDeploymentSpec,
  { maxReplicasPerNamespace, maxGpusPerNamespace }: TtsClassSpec["limits"],
): ClassViolation[] {
  return models.flatMap((model, index) => {
    const limitsGpus = maxGpusPerNamespace !== undefined && model.accelerator !== undefined;
    const counts = maxReplicasPerNamespace !== undefined || limitsGpus;
    if (!counts || highestReplicas(model) !== undefined) return [];
    return [
      {
        field: `spec.models[${index}].replicas`,
        problem:
          "is not set, but the class limits the replicas of a namespace, so replicas or scaling.maxReplicas is required",
      },
    ];
  });
}

function exceeded(
  what: "pods" | "devices",
  own: number,
  elsewhere: number,
  most: number | undefined,
): ClassViolation[] {
  if (most === undefined || own === 0 || own + elsewhere <= most) return [];
  const others = elsewhere === 0 ? "" : `, and other TtsDeployments of the namespace request ${elsewhere}`;
  return [
    {
      field: "spec",
      problem: `requests ${own} ${what}${others}, but the class allows ${most} ${what} in each namespace`,
    },
  ];
}
