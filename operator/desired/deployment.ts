import { children, env, jwksKey, keysKey, labels, paths, ports } from "../../config/contract/names.ts";
import { type ModelSpec, TtsDeploymentSpecSchema } from "../../crds/tts-deployment.ts";
import { TtsModelPoolSpecSchema } from "../../crds/tts-model-pool.ts";
import { withoutDefaults } from "../../crds/without-defaults.ts";
import type {
  V1Container,
  V1Deployment,
  V1EnvVar,
  V1PodSpec,
  V1PodTemplateSpec,
  V1ResourceRequirements,
} from "../manifest.ts";
import type { Deployment, Grant, TtsDeployment, TtsModelPool } from "../observed.ts";
import { durationSeconds } from "./duration.ts";
import { type Child, childLabels, childMetadata, type Owner, poolLabels } from "./metadata.ts";
import { choosePin, hashOf, type Pin, pinAnnotations, renderPin } from "./pinned.ts";
import {
  containerPort,
  containerSecurity,
  drainHook,
  httpProbe,
  livenessProbe,
  type Mounted,
  mountsOf,
  podSecurity,
  secretMount,
  temporaryMount,
  terminationSeconds,
  tokenMount,
  variables,
  volumesOf,
} from "./pod.ts";

/** What the operator brings along itself; it is in no user's spec. */
export interface ServerImage {
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never" | undefined;
}

type DeploymentChild = Child<{ spec: NonNullable<V1Deployment["spec"]> }>;

export function apiSelector(owner: TtsDeployment): Record<string, string> {
  return { [labels.deployment]: owner.metadata.name, [labels.component]: "api" };
}

export function modelSelector(owner: TtsModelPool): Record<string, string> {
  return { [labels.deployment]: owner.spec.deployment, [labels.pool]: owner.spec.pool };
}

/** `undefined` when there is none yet and the license does not let it start. */
export function apiDeployment(
  owner: TtsDeployment,
  live: Deployment | undefined,
  grant: Grant,
  server: ServerImage,
): DeploymentChild | undefined {
  return workload(owner, {
    name: children.apiDeployment(owner.metadata.name),
    component: "api",
    labels: {},
    selector: apiSelector(owner),
    fresh: renderPin(apiSettings(owner), apiTemplate(owner, server)),
    live,
    grant,
    progressDeadlineSeconds: 600,
    rolling: { maxSurge: 1, maxUnavailable: 0 },
  });
}

/** As {@link apiDeployment}, for one pool. */
export function modelDeployment(
  owner: TtsModelPool,
  live: Deployment | undefined,
  grant: Grant,
  server: ServerImage,
): DeploymentChild | undefined {
  const { progressDeadlineSeconds, ...rolling } = owner.spec.rollout;
  return workload(owner, {
    name: owner.metadata.name,
    component: "model",
    labels: poolLabels(owner),
    selector: modelSelector(owner),
    fresh: renderPin(modelSettings(owner), modelTemplate(owner, server)),
    live,
    grant,
    progressDeadlineSeconds,
    rolling,
  });
}

/** Hash of what the pods are made from; their number, the way they are replaced and the routing table are no part of it. */
export function apiSettings({ spec }: TtsDeployment): string {
  const { api, license, imagePullSecrets } = spec;
  const { replicas, service, ...settings } = api;
  const wish = { api: settings, license, imagePullSecrets };
  return hashOf(withoutDefaults(TtsDeploymentSpecSchema, wish));
}

/** As {@link apiSettings}, for one pool. */
export function modelSettings({ spec }: TtsModelPool): string {
  const { replicas, rollout, ...settings } = spec;
  return hashOf(withoutDefaults(TtsModelPoolSpecSchema, settings));
}

interface WorkloadParts {
  name: string;
  component: "api" | "model";
  labels: Record<string, string>;
  selector: Record<string, string>;
  fresh: Pin;
  live: Deployment | undefined;
  grant: Grant;
  progressDeadlineSeconds: number;
  rolling: { maxSurge: number | string; maxUnavailable: number | string };
}

function workload(owner: Owner, parts: WorkloadParts): DeploymentChild | undefined {
  const { live, grant, rolling, progressDeadlineSeconds } = parts;
  if (grant.held && live === undefined) return undefined;
  const pin = choosePin(parts.fresh, live, grant.held);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: childMetadata(owner, parts.name, parts.component, {
      labels: parts.labels,
      annotations: pinAnnotations(pin),
    }),
    spec: {
      replicas: grant.replicas,
      revisionHistoryLimit: 5,
      progressDeadlineSeconds,
      selector: { matchLabels: parts.selector },
      strategy: { type: "RollingUpdate", rollingUpdate: rolling },
      template: pin.template,
    },
  };
}

function apiTemplate(owner: TtsDeployment, server: ServerImage): V1PodTemplateSpec {
  const { api, imagePullSecrets } = owner.spec;
  const mounted = apiMounts(owner);
  const container: V1Container = {
    name: "api",
    ...imageOf(api.image, server),
    args: ["api"],
    ports: containerPort.api,
    env: variables(apiVariables(owner)),
    resources: resourcesOf(api.resources),
    ...mountsOf(mounted),
    startupProbe: httpProbe("/livez", { periodSeconds: 1, failureThreshold: 120, timeoutSeconds: 2 }),
    readinessProbe: httpProbe("/ready", { periodSeconds: 3, failureThreshold: 2, timeoutSeconds: 3 }),
    livenessProbe: livenessProbe("/livez", { periodSeconds: 10, failureThreshold: 3, timeoutSeconds: 5 }),
    ...drainHook(api.drain),
    ...containerSecurity,
  };
  return {
    metadata: { labels: childLabels(owner, "api") },
    spec: {
      serviceAccountName: children.apiServiceAccount(owner.metadata.name),
      automountServiceAccountToken: true,
      ...podOf(container, mounted, terminationSeconds(api.drain), imagePullSecrets),
    },
  };
}

function apiVariables({ metadata, spec }: TtsDeployment): Record<string, string> {
  return {
    [env.port]: String(ports.api),
    [env.routingConfigMap]: children.routing(metadata.name),
    [env.tokenDir]: paths.token,
    [env.licenseFile]: `${paths.license}/${spec.license.secretRef.key}`,
    [env.licenseKeysFile]: `${paths.licenseKeys}/${jwksKey}`,
    [env.licenseGraceSeconds]: String(durationSeconds(spec.license.gracePeriod)),
    ...(spec.api.keys && { [env.keysFile]: `${paths.keys}/${keysKey}` }),
    [env.drainSeconds]: String(spec.api.drain.maxStreamSeconds),
  };
}

/** License and keys are optional to the kubelet: a Secret that vanished must not keep a pod from starting again. */
function apiMounts({ metadata, spec }: TtsDeployment): Mounted[] {
  const { name: license, key } = spec.license.secretRef;
  const keys = spec.api.keys?.secretRef.name;
  const routing = children.routing(metadata.name);
  return [
    tokenMount(children.token(metadata.name)),
    secretMount("license", paths.license, {
      secretName: license,
      optional: true,
      items: [{ key, path: key }],
    }),
    {
      volume: {
        name: "license-keys",
        configMap: { name: routing, items: [{ key: jwksKey, path: jwksKey }] },
      },
      mount: { name: "license-keys", mountPath: paths.licenseKeys, readOnly: true },
    },
    ...(keys === undefined ? [] : [secretMount("keys", paths.keys, { secretName: keys, optional: true })]),
    temporaryMount,
  ];
}

/** The routes that the specification (4.6) gives the tiers for liveness. */
const livenessPaths = { mist: "/ping", arcana: "/readyz" } as const;

function modelTemplate(owner: TtsModelPool, server: ServerImage): V1PodTemplateSpec {
  const { kind, deployment, drain, probes, accelerator, imagePullSecrets, env: more } = owner.spec;
  const mounted = [tokenMount(children.token(deployment)), temporaryMount];
  const alive = livenessPaths[kind];
  const container: V1Container = {
    name: kind,
    ...imageOf(owner.spec.image, server),
    args: [kind],
    ports: containerPort.model,
    env: [...variables(modelVariables(owner)), ...((more ?? []) as V1EnvVar[])],
    resources: resourcesOf(owner.spec.resources, accelerator),
    ...mountsOf(mounted),
    startupProbe: httpProbe(alive, probes.startup),
    readinessProbe: httpProbe("/ready", probes.readiness),
    livenessProbe: livenessProbe(alive, probes.liveness),
    ...drainHook(drain),
    ...containerSecurity,
  };
  return {
    metadata: { labels: { ...childLabels(owner, "model"), ...poolLabels(owner) } },
    spec: {
      serviceAccountName: children.modelServiceAccount(deployment),
      automountServiceAccountToken: false,
      ...placement(accelerator),
      ...podOf(container, mounted, terminationSeconds(drain), imagePullSecrets),
    },
  };
}

function modelVariables({ spec }: TtsModelPool): Record<string, string> {
  return {
    [env.port]: String(ports.model),
    [env.tokenDir]: paths.token,
    [env.maxConcurrentStreams]: String(spec.maxConcurrentStreams),
    [env.drainSeconds]: String(spec.drain.maxStreamSeconds),
  };
}

type Accelerator = ModelSpec["accelerator"];
type Resources = ModelSpec["resources"];

/** Extended resources are set in `limits`; Kubernetes takes the request from there. */
function resourcesOf({ requests, limits }: Resources, accelerator?: Accelerator): V1ResourceRequirements {
  const device = accelerator && { [accelerator.resourceName]: accelerator.count };
  return {
    ...(requests && { requests: asText(requests) }),
    ...((limits || device) && { limits: asText({ ...limits, ...device }) }),
  };
}

function asText(quantities: Record<string, string | number>): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities).map(([name, quantity]) => [name, String(quantity)]));
}

function placement(
  accelerator: Accelerator,
): Pick<V1PodSpec, "nodeSelector" | "tolerations" | "runtimeClassName"> {
  if (accelerator === undefined) return {};
  const { nodeSelector, tolerations, runtimeClassName, resourceName } = accelerator;
  return {
    nodeSelector,
    tolerations: [{ key: resourceName, operator: "Exists", effect: "NoSchedule" }, ...tolerations],
    ...(runtimeClassName !== undefined && { runtimeClassName }),
  };
}

function imageOf(
  image: string | undefined,
  server: ServerImage,
): Pick<V1Container, "image" | "imagePullPolicy"> {
  if (image !== undefined) return { image };
  return { image: server.image, ...(server.pullPolicy && { imagePullPolicy: server.pullPolicy }) };
}

function podOf(
  container: V1Container,
  mounted: readonly Mounted[],
  terminationGracePeriodSeconds: number,
  imagePullSecrets: TtsDeployment["spec"]["imagePullSecrets"],
): V1PodSpec {
  return {
    ...podSecurity,
    enableServiceLinks: false,
    terminationGracePeriodSeconds,
    ...(imagePullSecrets && { imagePullSecrets }),
    containers: [container],
    ...volumesOf(mounted),
  };
}
