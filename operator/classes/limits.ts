import type { TtsClassSpec } from "../../crds/tts-class.ts";
import type { TtsDeploymentSpec } from "../../crds/tts-deployment.ts";
import type { TtsModelCache } from "../facts/observed.ts";

/** Checks the fields that a TtsDeployment sets against the limits of its class. */

/** A field that the class does not allow. */
export interface ClassViolation {
  /** The path of the field, such as `spec.api.service.type`. */
  readonly field: string;
  /** The value of the field, and what the class allows. It follows the name of the field in a sentence. */
  readonly problem: string;
}

type Limits = TtsClassSpec["limits"];

/** A value of the spec, with the path of its field. */
interface Located<T> {
  readonly field: string;
  readonly value: T;
}

/** Returns the fields of the spec that exceed the limits. An absent limit allows every value. */
export function limitViolations(spec: TtsDeploymentSpec, limits: Limits): ClassViolation[] {
  return [
    ...hostnameViolations(spec, limits),
    ...serviceTypeViolations(spec, limits),
    ...annotationViolations(spec, limits),
    ...imageViolations(spec, limits),
    ...modelSourceViolations(spec, limits),
    ...podTemplateViolations(spec, limits),
    ...acceleratorViolations(spec, limits),
  ];
}

/** Returns a violation for each value that is not allowed. Without a list, every value is allowed. */
function refused(
  found: readonly Located<string>[],
  allowed: readonly string[] | undefined,
  isAllowed: (value: string, pattern: string) => boolean,
): ClassViolation[] {
  if (allowed === undefined) return [];
  return found
    .filter(({ value }) => !allowed.some((pattern) => isAllowed(value, pattern)))
    .map(({ field, value }) => ({ field, problem: `is ${value}, but ${allowedValues(allowed)}` }));
}

/** The number of allowed values that a message lists. */
const mostListed = 8;

function allowedValues(allowed: readonly string[]): string {
  if (allowed.length === 0) return "the class allows no value";
  const more = allowed.length > mostListed ? ` and ${allowed.length - mostListed} more` : "";
  return `the class allows ${allowed.slice(0, mostListed).join(", ")}${more}`;
}

function hostnameViolations({ api }: TtsDeploymentSpec, { allowedHostnames }: Limits): ClassViolation[] {
  const found = (api.route?.hostnames ?? []).map((value, index) => ({
    field: `spec.api.route.hostnames[${index}]`,
    value,
  }));
  return refused(found, allowedHostnames, matchesHostname);
}

function matchesHostname(hostname: string, pattern: string): boolean {
  return hostname === pattern || (pattern.startsWith("*.") && hostname.endsWith(pattern.slice(1)));
}

function serviceTypeViolations(
  { api }: TtsDeploymentSpec,
  { allowedServiceTypes }: Limits,
): ClassViolation[] {
  const found = [{ field: "spec.api.service.type", value: api.service.type }];
  return refused(found, allowedServiceTypes, (type, allowed) => type === allowed);
}

type PodTemplate = NonNullable<TtsDeploymentSpec["api"]["podTemplate"]>;

function podTemplatesOf({ api, models }: TtsDeploymentSpec): Located<PodTemplate>[] {
  const all = [
    { field: "spec.api.podTemplate", value: api.podTemplate },
    ...models.map((model, index) => ({
      field: `spec.models[${index}].podTemplate`,
      value: model.podTemplate,
    })),
  ];
  return all.flatMap(({ field, value }) => (value === undefined ? [] : [{ field, value }]));
}

function annotationViolations(spec: TtsDeploymentSpec, { allowedAnnotations }: Limits): ClassViolation[] {
  const { service, route } = spec.api;
  const maps: Located<Record<string, string> | undefined>[] = [
    { field: "spec.api.service.annotations", value: service.annotations },
    { field: "spec.api.route.ingress.annotations", value: route?.ingress?.annotations },
    ...podTemplatesOf(spec).map(({ field, value }) => ({
      field: `${field}.metadata.annotations`,
      value: value.metadata?.annotations,
    })),
  ];
  const found = maps.flatMap(({ field, value = {} }) =>
    Object.keys(value).map((name) => ({ field, value: name })),
  );
  if (allowedAnnotations === undefined) return [];
  return found
    .filter(({ value }) => !allowedAnnotations.some((pattern) => matchesName(value, pattern)))
    .map(({ field, value }) => ({
      field,
      problem: `contains ${value}, but ${allowedValues(allowedAnnotations)}`,
    }));
}

function matchesName(name: string, pattern: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function imageViolations(spec: TtsDeploymentSpec, { allowedImages }: Limits): ClassViolation[] {
  const { api, models, telemetry } = spec;
  const all = [
    { field: "spec.api.image", value: api.image },
    { field: "spec.telemetry.collector.image", value: telemetry?.collector?.image },
    ...models.flatMap(({ image, cache }, index) => [
      { field: `spec.models[${index}].image`, value: image },
      {
        field: `spec.models[${index}].cache.imageVolume.reference`,
        value: cache?.imageVolume?.reference,
      },
    ]),
  ];
  const found = all.flatMap(({ field, value }) => (value === undefined ? [] : [{ field, value }]));
  return refused(found, allowedImages, (image, prefix) => startsWithPart(image, prefix, "/:@"));
}

/**
 * Returns whether the text is the prefix, or continues the prefix with one of these separators. The prefix
 * `example.com` therefore does not match `example.com.attacker.example`.
 */
function startsWithPart(text: string, prefix: string, separators: string): boolean {
  if (!text.startsWith(prefix)) return false;
  const next = text.charAt(prefix.length);
  return next === "" || prefix.endsWith("/") || separators.includes(next);
}

function modelSourceViolations(
  { models }: TtsDeploymentSpec,
  { allowedModelSources }: Limits,
): ClassViolation[] {
  const found = models.flatMap(({ cache }, model) =>
    locatedSources(`spec.models[${model}].cache.sources`, cache?.sources),
  );
  return refused(found, allowedModelSources, matchesUrl);
}

function locatedSources(list: string, sources: TtsModelCache["spec"]["sources"] = []): Located<string>[] {
  return sources.flatMap(({ url, endpoint }, index) => [
    { field: `${list}[${index}].url`, value: url },
    ...(endpoint === undefined ? [] : [{ field: `${list}[${index}].endpoint`, value: endpoint }]),
  ]);
}

/**
 * Returns the fields of a TtsModelCache that exceed the limits. A preset counts as the source
 * `preset:NAME`.
 */
export function cacheViolations({ metadata, spec }: TtsModelCache, limits: Limits): ClassViolation[] {
  const { preset, sources } = spec;
  const presets = preset === undefined ? [] : [{ field: "spec.preset", value: `preset:${preset}` }];
  const found = [...presets, ...locatedSources("spec.sources", sources)];
  const { allowedNamespaces, allowedModelSources } = limits;
  const isAllowedHere = allowedNamespaces === undefined || allowedNamespaces.includes(metadata.namespace);
  const where = {
    field: "metadata.namespace",
    problem: `is ${metadata.namespace}, which the class does not allow`,
  };
  return [...(isAllowedHere ? [] : [where]), ...refused(found, allowedModelSources, matchesUrl)];
}

/** Matches a path that a program may resolve to another path, such as `/allowed/../other`. */
const resolvedPath = /(^|[/\\])(\.|%2e){1,2}([/\\?#]|$)|\\/i;

function matchesUrl(url: string, prefix: string): boolean {
  const separators = /^https?:/.test(prefix) ? "/?#" : "/:@";
  return !resolvedPath.test(url) && startsWithPart(url, prefix, separators);
}

/** Fields of a pod that `podTemplate: Safe` allows: they affect only the placement and the DNS of the pod. */
const safeFields = ["affinity", "dnsConfig", "nodeSelector", "tolerations", "topologySpreadConstraints"];

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
      .filter((name) => !safeFields.includes(name))
      .map((name) => ({
        field: `${field}.spec.${name}`,
        problem: `is set, but the class allows only ${safeFields.join(", ")}`,
      })),
  );
}

function acceleratorViolations({ models }: TtsDeploymentSpec, { accelerators }: Limits): ClassViolation[] {
  if (accelerators !== "Profiles") return [];
  return models.flatMap(({ accelerator }, index) =>
    accelerator === undefined
      ? []
      : [
          {
            field: `spec.models[${index}].accelerator`,
            problem: "is set, but the class allows only its profiles in acceleratorProfile",
          },
        ],
  );
}
