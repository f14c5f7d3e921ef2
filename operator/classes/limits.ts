import type { TtsClassSpec } from "../../crds/tts-class.ts";
import type { TtsDeploymentSpec } from "../../crds/tts-deployment.ts";
import type { TtsModelCache } from "../facts/observed.ts";
import {
  type LimitedFields,
  limitedCacheFields,
  limitedFields,
  safePodFields,
  valuesAt,
} from "./limited-fields.ts";
import { matchers } from "./match-pattern.ts";

/** Checks the fields that a TtsDeployment sets against the limits of its class. */

/** A field that the class does not allow. */
export interface ClassViolation {
  /** The path of the field, such as `spec.api.service.type`. */
  readonly field: string;
  /**
   * The value of the field, and what the class allows. In a message, this text follows the name of the field.
   */
  readonly problem: string;
}

type Limits = TtsClassSpec["limits"];

/** Returns the fields of the spec that exceed the limits. An absent limit allows every value. */
export function limitViolations(spec: TtsDeploymentSpec, limits: Limits): ClassViolation[] {
  return [
    ...limitedFields.flatMap((fields) => listViolations(spec, fields, limits[fields.limit])),
    ...podTemplateViolations(spec, limits),
    ...acceleratorViolations(spec, limits),
  ];
}

/** Returns a violation for each value that is not in the list of a limit. Without a list, every value is allowed. */
function listViolations(
  spec: object,
  { matching, paths, maps = [] }: LimitedFields,
  allowed: readonly string[] | undefined,
): ClassViolation[] {
  if (allowed === undefined) return [];
  const isRefused = (value: string) => !allowed.some((pattern) => matchers[matching](value, pattern));
  const values = paths.flatMap((path) => valuesAt(spec, path)) as { field: string; value: string }[];
  const keys = maps
    .flatMap((path) => valuesAt(spec, path))
    .flatMap(({ field, value }) => Object.keys(value as object).map((key) => ({ field, key })));
  return [
    ...values
      .filter(({ value }) => isRefused(value))
      .map(({ field, value }) => ({ field, problem: `is ${value}, but ${allowedValues(allowed)}` })),
    ...keys
      .filter(({ key }) => isRefused(key))
      .map(({ field, key }) => ({ field, problem: `contains ${key}, but ${allowedValues(allowed)}` })),
  ];
}

/** The number of allowed values that a message lists. */
const mostListed = 8;

function allowedValues(allowed: readonly string[]): string {
  if (allowed.length === 0) return "the class allows no value";
  const more = allowed.length > mostListed ? ` and ${allowed.length - mostListed} more` : "";
  return `the class allows ${allowed.slice(0, mostListed).join(", ")}${more}`;
}

type PodTemplate = NonNullable<TtsDeploymentSpec["api"]["podTemplate"]>;

function podTemplatesOf(spec: TtsDeploymentSpec): { field: string; value: PodTemplate }[] {
  const paths = ["spec.api.podTemplate", "spec.models[].podTemplate"];
  return paths.flatMap((path) => valuesAt(spec, path)) as { field: string; value: PodTemplate }[];
}

/**
 * Returns the fields of a TtsModelCache that exceed the limits. A preset counts as the source
 * `preset:NAME`.
 */
export function cacheViolations({ metadata, spec }: TtsModelCache, limits: Limits): ClassViolation[] {
  const { preset } = spec;
  const { namespace } = metadata;
  const named = { ...spec, ...(preset !== undefined && { preset: `preset:${preset}` }) };
  const isAllowedHere = limits.allowedNamespaces?.includes(namespace) ?? true;
  const where = { field: "metadata.namespace", problem: `is ${namespace}, which the class does not allow` };
  return [
    ...(isAllowedHere ? [] : [where]),
    ...limitedCacheFields.flatMap((fields) => listViolations(named, fields, limits[fields.limit])),
  ];
}

function podTemplateViolations(
  spec: TtsDeploymentSpec,
  { podTemplate: allowed = "All" }: Limits,
): ClassViolation[] {
  if (allowed === "All") return [];
  if (allowed === "None")
    return podTemplatesOf(spec).map(({ field }) => ({
      field,
      problem: "is set, but the class allows no podTemplate",
    }));
  return podTemplatesOf(spec).flatMap(({ field, value }) =>
    Object.keys(value.spec ?? {})
      .filter((name) => !safePodFields.includes(name))
      .map((name) => ({
        field: `${field}.spec.${name}`,
        problem: `is set, but the class allows only ${safePodFields.join(", ")}`,
      })),
  );
}

function acceleratorViolations(
  { models }: TtsDeploymentSpec,
  { accelerators, maxGpusPerNamespace }: Limits,
): ClassViolation[] {
  return models.flatMap(({ accelerator }, index) => {
    if (accelerator === undefined) return [];
    const field = `spec.models[${index}].accelerator`;
    if (accelerators === "Profiles")
      return [{ field, problem: "is set, but the class allows only its profiles in acceleratorProfile" }];
    if (maxGpusPerNamespace === undefined || accelerator.claimTemplateName === undefined) return [];
    return [{ field: `${field}.claimTemplateName`, problem: `is set, but ${uncountedClaims}` }];
  });
}

/** The reason why a class with a sum of devices allows no claim template. */
export const uncountedClaims =
  "the class limits the devices of a namespace, and a claim may allocate any number of them";
