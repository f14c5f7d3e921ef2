import { isDeepStrictEqual } from "node:util";
import { env, paths } from "../../../config/contract/names.ts";
import { reservedVariables } from "../../../crds/fields.ts";
import type { V1Container, V1PodTemplateSpec } from "../../facts/kubernetes-object.ts";
import { InvalidPatch, type JsonValue, type MergeSchema, strategicMerge } from "./strategic-merge.ts";

/** Merges the `podTemplate` of the user over the template of the operator. */

const container: MergeSchema = {
  lists: {
    env: { key: "name" },
    ports: { key: "containerPort" },
    volumeMounts: { key: "mountPath" },
    volumeDevices: { key: "devicePath" },
  },
};

/**
 * The merge keys of the Kubernetes API (`patchMergeKey` in core/v1). Lists without a merge key are replaced.
 */
const podTemplate: MergeSchema = {
  maps: {
    spec: {
      lists: {
        containers: { key: "name", items: container },
        initContainers: { key: "name", items: container },
        volumes: { key: "name" },
        imagePullSecrets: { key: "name" },
        hostAliases: { key: "ip" },
        topologySpreadConstraints: { key: "topologyKey" },
        schedulingGates: { key: "name" },
        resourceClaims: { key: "name" },
      },
    },
  },
};

/**
 * Parses the podTemplate of a pool, which is stored as JSON. Throws `InvalidPatch` if the text is not valid
 * JSON.
 */
export function parseOverride(text: string | undefined): JsonValue | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
  } catch (cause) {
    throw new InvalidPatch("podTemplate is not valid JSON; correct the JSON", { cause });
  }
}

/**
 * Returns the template with the override merged over it. Throws `InvalidPatch` with a message for the user.
 */
export function overridden(template: V1PodTemplateSpec, override: JsonValue | undefined): V1PodTemplateSpec {
  if (override === undefined) return template;
  assertNoDevices(override);
  const main = template.spec?.containers[0]?.name;
  const merged = strategicMerge(
    template as JsonValue,
    override,
    podTemplate,
    "podTemplate",
  ) as V1PodTemplateSpec;
  if (!merged.spec?.containers?.some(({ name }) => name === main)) {
    throw new InvalidPatch(`podTemplate.spec.containers must keep the container ${main}`);
  }
  assertOwnVariables(template, merged);
  assertLicenseKeys(template, merged);
  // Added containers are before the operator's container, so this annotation selects the container for
  // `kubectl logs`.
  const annotations = {
    "kubectl.kubernetes.io/default-container": String(main),
    ...merged.metadata?.annotations,
  };
  return { ...merged, metadata: { ...merged.metadata, annotations } };
}

/**
 * Variables that a podTemplate must not change: the variables that `env` rejects, and the variables with
 * which an API pod finds its routing table and evaluates its license.
 */
const keptVariables = [
  ...reservedVariables.filter((name) => name !== env.podName),
  ...[env.routingConfigMap, env.licenseFile, env.licenseKeysFile, env.licenseGraceSeconds],
  ...[env.licenseEndpoint, env.licenseCheckSeconds],
];

/** Returns the operator's container in the template before and after the merge. */
function ownContainers(before: V1PodTemplateSpec, after: V1PodTemplateSpec): [V1Container, V1Container] {
  const own = before.spec?.containers[0] ?? { name: "" };
  return [own, after.spec?.containers.find(({ name }) => name === own.name) ?? own];
}

/**
 * Throws if the podTemplate changes a variable of the operator. Otherwise a user could raise a limit of the
 * license, such as the streams of a pod.
 */
function assertOwnVariables(before: V1PodTemplateSpec, after: V1PodTemplateSpec): void {
  const [own, merged] = ownContainers(before, after);
  for (const { name, ...value } of own.env ?? []) {
    if (!keptVariables.includes(name)) continue;
    const sameName = merged.env?.filter((variable) => variable.name === name) ?? [];
    if (sameName.length === 1 && isDeepStrictEqual(sameName[0], { name, ...value })) continue;
    throw new InvalidPatch(
      `podTemplate.spec.containers[${own.name}].env must not change ${name}, which the operator sets; use a field of the spec instead, such as maxConcurrentStreams, drain or license`,
    );
  }
}

/** Throws if the podTemplate replaces the keys with which an API pod verifies its license. */
function assertLicenseKeys(before: V1PodTemplateSpec, after: V1PodTemplateSpec): void {
  const [own, merged] = ownContainers(before, after);
  const mount = own.volumeMounts?.find(({ mountPath }) => mountPath === paths.licenseKeys);
  if (mount === undefined) return;
  const isWithin = ({ mountPath }: { mountPath: string }) =>
    `${mountPath}/`.startsWith(`${paths.licenseKeys}/`);
  const volumeIn = ({ spec }: V1PodTemplateSpec) => spec?.volumes?.find(({ name }) => name === mount.name);
  if (
    isDeepStrictEqual(merged.volumeMounts?.filter(isWithin), [mount]) &&
    isDeepStrictEqual(volumeIn(after), volumeIn(before))
  )
    return;
  throw new InvalidPatch(
    `podTemplate must not change the volume ${mount.name} and its mount ${paths.licenseKeys}, because API pods verify licenses with these keys; remove the change`,
  );
}

type Resources = Record<string, Record<string, unknown>>;
type Container = { name?: string; resources?: Resources };
const notCounted = /^(cpu|memory|ephemeral-storage|hugepages-.*)$/;

/** Throws if the podTemplate requests devices, because the license does not count them there. */
function assertNoDevices(override: JsonValue): void {
  const spec = (override.spec ?? {}) as { [list: string]: unknown };
  for (const list of ["containers", "initContainers"]) {
    for (const { name, resources = {} } of asList<Container>(spec[list])) {
      const requested = [resources.limits, resources.requests].flatMap((map) => Object.keys(map ?? {}));
      const device = requested.find((resource) => !notCounted.test(resource));
      if (device === undefined && resources.claims === undefined) continue;
      throw new InvalidPatch(
        `podTemplate.spec.${list}[${name}].resources requests ${device ?? "a claim"}; request devices with accelerator, where the license counts them`,
      );
    }
  }
  if (spec.resourceClaims !== undefined) {
    throw new InvalidPatch(
      "podTemplate.spec.resourceClaims is set; claim devices with accelerator.claimTemplateName, where the license counts them",
    );
  }
}

function asList<T>(value: unknown): T[] {
  return Array.isArray(value) ? value : [];
}
