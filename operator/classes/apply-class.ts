import type { TtsClassSpec } from "../../crds/tts-class.ts";
import { longestAcceptedSpec, type ModelSpec, type TtsDeploymentSpec } from "../../crds/tts-deployment.ts";
import { type ClassUse, exceededSums, unlimitedPools } from "./class-use.ts";
import { type ClassViolation, limitViolations, uncountedClaims } from "./limits.ts";

export interface AppliedClass {
  /**
   * The spec with the defaults and profiles of the class. The names of the class and of profiles are removed.
   */
  readonly spec: TtsDeploymentSpec;
  /** The fields that the class does not allow. The spec must not be rendered if there are any. */
  readonly violations: readonly ClassViolation[];
  /** The sums of the namespace that the spec exceeds together with the other TtsDeployments. */
  readonly exceededSums: readonly ClassViolation[];
}

/** The values that the limits of a class depend on in addition to the spec. */
export interface ClassContext {
  /** The namespace of the TtsDeployment. */
  readonly namespace: string;
  /** The use of the other TtsDeployments of the class in the namespace. */
  readonly elsewhere: ClassUse;
  /** Changes the spec with the defaults before it is rendered. Only the sums and the length limit its result. */
  readonly adjust?: (spec: TtsDeploymentSpec) => TtsDeploymentSpec;
}

/**
 * Applies a class to the spec of a TtsDeployment. Fields of the TtsDeployment have priority over defaults.
 * The limits apply to the fields of the TtsDeployment. The sums also include the defaults.
 */
export function applyClass(
  spec: TtsDeploymentSpec,
  { defaults, acceleratorProfiles, limits }: TtsClassSpec,
  { namespace, elsewhere, adjust = (same) => same }: ClassContext,
): AppliedClass {
  const { models, violations } = withProfiles(spec.models, acceleratorProfiles, limits);
  const complete = adjust(withDefaults({ ...spec, models }, defaults));
  return {
    spec: complete,
    violations: [
      ...namespaceViolations(namespace, limits),
      ...limitViolations(spec, limits),
      ...violations,
      ...unlimitedPools(complete, limits),
      ...lengthViolations(complete),
    ],
    exceededSums: exceededSums(complete, limits, elsewhere),
  };
}

function namespaceViolations(
  namespace: string,
  { allowedNamespaces }: TtsClassSpec["limits"],
): ClassViolation[] {
  if (allowedNamespaces === undefined || allowedNamespaces.includes(namespace)) return [];
  return [{ field: "metadata.namespace", problem: `is ${namespace}, which may not use the class` }];
}

/** The operator must be able to record an accepted spec. Otherwise it could not count the spec after a restart. */
function lengthViolations(spec: TtsDeploymentSpec): ClassViolation[] {
  const { length } = JSON.stringify(spec);
  if (length <= longestAcceptedSpec) return [];
  const problem = `has ${length} characters with the defaults of the class, but at most ${longestAcceptedSpec} are allowed with a class`;
  return [{ field: "spec", problem }];
}

/** Replaces the names of profiles with their accelerators. */
function withProfiles(
  models: readonly ModelSpec[],
  profiles: TtsClassSpec["acceleratorProfiles"],
  { maxGpusPerNamespace }: TtsClassSpec["limits"],
): { models: ModelSpec[]; violations: ClassViolation[] } {
  const violations: ClassViolation[] = [];
  const resolved = models.map(({ acceleratorProfile, ...model }, index) => {
    if (acceleratorProfile === undefined) return model;
    const field = `spec.models[${index}].acceleratorProfile`;
    const profile = profiles.find(({ name }) => name === acceleratorProfile);
    if (profile !== undefined) {
      const isUncounted = maxGpusPerNamespace !== undefined && profile.accelerator.claimTemplateName;
      const problem = `is ${acceleratorProfile}, which has a claimTemplateName, but ${uncountedClaims}`;
      if (isUncounted) violations.push({ field, problem });
      return { ...model, accelerator: profile.accelerator };
    }
    const names = profiles.map(({ name }) => name).join(", ") || "none";
    violations.push({
      field,
      problem: `is ${acceleratorProfile}, but the profiles of the class are: ${names}`,
    });
    return model;
  });
  return { models: resolved, violations };
}

function withDefaults(
  { className: _, ...spec }: TtsDeploymentSpec,
  defaults: TtsClassSpec["defaults"],
): TtsDeploymentSpec {
  const { images = {}, imagePullSecrets, imagePullPolicy, fixedUserIds } = defaults;
  const { priorityClassName, topologySpread, telemetry, downloads } = defaults;
  return {
    ...given({ imagePullSecrets, imagePullPolicy, fixedUserIds, telemetry, downloads }),
    ...spec,
    api: { ...given({ image: images.api, priorityClassName }), ...spec.api },
    models: spec.models.map((model) => ({
      ...given({ image: images[model.kind], priorityClassName, replicas: defaultReplicas(model, defaults) }),
      ...model,
    })),
    availability: { ...given({ topologySpread }), ...spec.availability },
  };
}

function defaultReplicas({ scaling }: ModelSpec, { replicas }: TtsClassSpec["defaults"]): number | undefined {
  return scaling === undefined ? replicas : undefined;
}

/** Returns the fields that have a value. */
function given<T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): Partial<T> {
  const found = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(found) as Partial<T>;
}
