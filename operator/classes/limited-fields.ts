import type { TtsClassSpec } from "../../crds/tts-class.ts";

/**
 * The fields of a TtsDeployment that a class can limit. The operator and the ValidatingAdmissionPolicy of the
 * chart check the same fields. `[]` in a path stands for every item of a list.
 */

type Limits = TtsClassSpec["limits"];

/** A limit that is a list of allowed values or patterns. */
type ListLimit = {
  [K in keyof Limits]-?: string[] extends NonNullable<Limits[K]> ? K : never;
}[keyof Limits];

/** The rule by which a pattern of a limit matches the value of a field. */
export type Matching = "exact" | "name" | "hostname" | "image" | "url";

export interface LimitedFields {
  readonly limit: ListLimit | "allowedServiceTypes";
  readonly matching: Matching;
  /** Fields whose value must be allowed. */
  readonly paths: readonly string[];
  /** Maps whose keys must be allowed. */
  readonly maps?: readonly string[];
}

const exporter = "spec.telemetry.collector.exporter";
const auth = "spec.telemetry.collector.auth";

/** A proxy and a registry decide which files arrive, as a source does. */
const downloads = ["spec.downloads.proxy", "spec.downloads.registries.pypi", "spec.downloads.registries.npm"];

export const limitedFields: readonly LimitedFields[] = [
  { limit: "allowedHostnames", matching: "hostname", paths: ["spec.api.route.hostnames[]"] },
  { limit: "allowedServiceTypes", matching: "exact", paths: ["spec.api.service.type"] },
  {
    limit: "allowedAnnotations",
    matching: "name",
    paths: [],
    maps: [
      "spec.api.service.annotations",
      "spec.api.route.ingress.annotations",
      "spec.api.podTemplate.metadata.annotations",
      "spec.models[].podTemplate.metadata.annotations",
    ],
  },
  {
    limit: "allowedImages",
    matching: "image",
    paths: [
      "spec.api.image",
      "spec.telemetry.collector.image",
      "spec.models[].image",
      "spec.models[].cache.imageVolume.reference",
    ],
  },
  {
    limit: "allowedModelSources",
    matching: "url",
    paths: ["spec.models[].cache.sources[].url", "spec.models[].cache.sources[].endpoint", ...downloads],
  },
  { limit: "allowedEnv", matching: "name", paths: ["spec.models[].env[].name"] },
  {
    limit: "allowedSecrets",
    matching: "name",
    paths: [
      "spec.license.secretRef.name",
      "spec.imagePullSecrets[].name",
      "spec.api.keys.secretRef.name",
      "spec.api.keys.postgres.secretRef.name",
      "spec.api.keys.postgres.caSecretRef.name",
      "spec.api.tls.secretName",
      "spec.api.route.ingress.tlsSecretName",
      "spec.api.rateLimit.valkey.secretRef.name",
      "spec.api.rateLimit.valkey.caSecretRef.name",
      "spec.api.dashboard.setupSecretRef.name",
      "spec.api.dashboard.oidc.clientSecretRef.name",
      "spec.api.dashboard.oidc.caSecretRef.name",
      `${exporter}.caSecretRef.name`,
      `${auth}.bearer.secretRef.name`,
      `${auth}.basic.secretRef.name`,
      `${auth}.oauth2.secretRef.name`,
      `${auth}.headers[].secretRef.name`,
      "spec.models[].env[].valueFrom.secretKeyRef.name",
      "spec.models[].cache.sources[].secretRef.name",
    ],
  },
  {
    limit: "allowedClaims",
    matching: "name",
    paths: [
      "spec.api.keys.sqlite.persistentVolumeClaim.claimName",
      "spec.models[].cache.persistentVolumeClaim.claimName",
    ],
  },
];

/** The fields of a TtsModelCache that a class can limit. */
export const limitedCacheFields: readonly LimitedFields[] = [
  {
    limit: "allowedModelSources",
    matching: "url",
    paths: ["spec.preset", "spec.sources[].url", "spec.sources[].endpoint", ...downloads],
  },
  {
    limit: "allowedSecrets",
    matching: "name",
    paths: ["spec.imagePullSecrets[].name", "spec.sources[].secretRef.name"],
  },
  { limit: "allowedClaims", matching: "name", paths: ["spec.storage.existingClaim.claimName"] },
];

/** Fields of a pod that `podTemplate: Safe` allows: they affect only the placement and the DNS of the pod. */
export const safePodFields = [
  "affinity",
  "dnsConfig",
  "nodeSelector",
  "tolerations",
  "topologySpreadConstraints",
];

/** A value of the spec, with the path of its field. */
interface Located {
  readonly field: string;
  readonly value: unknown;
}

/** Returns the values at a path. Returns an empty list if the path has no value. */
export function valuesAt(spec: object, path: string): Located[] {
  let found: Located[] = [{ field: "", value: { spec } }];
  for (const step of path.split(".")) {
    const name = step.replace("[]", "");
    found = found.flatMap(({ field, value }) => {
      const next = (value as { readonly [name: string]: unknown } | undefined)?.[name];
      const at = field === "" ? name : `${field}.${name}`;
      if (next === undefined) return [];
      if (name === step) return [{ field: at, value: next }];
      return (next as unknown[]).map((item, index) => ({ field: `${at}[${index}]`, value: item }));
    });
  }
  return found;
}
