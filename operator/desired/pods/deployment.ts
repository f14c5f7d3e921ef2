import {
  children,
  env,
  jwksKey,
  labels,
  licenseKey,
  paths,
  ports,
  requests,
} from "../../../config/contract/names.ts";
import { TtsDeploymentSpecSchema } from "../../../crds/tts-deployment.ts";
import { TtsModelPoolSpecSchema } from "../../../crds/tts-model-pool.ts";
import { withoutDefaults } from "../../../crds/without-defaults.ts";
import {
  type Child,
  childLabels,
  childMetadata,
  type Owner,
  poolLabels,
  restartOf,
} from "../../facts/child-metadata.ts";
import { durationSeconds, graceSecondsOf } from "../../facts/duration.ts";
import type {
  V1Container,
  V1Deployment,
  V1DeploymentStrategy,
  V1EnvVar,
  V1PodSpec,
  V1PodTemplateSpec,
} from "../../facts/kubernetes-object.ts";
import type { Deployment, LicenseAllowance, TtsDeployment, TtsModelPool } from "../../facts/observed.ts";
import type { ServerImage } from "../../facts/settings.ts";
import { engineResources } from "./accelerator-use.ts";
import { hasOneWriter, keyMounts, keyVariables } from "./api-keys.ts";
import { tlsContainerPorts, tlsMounts, tlsVariables } from "./api-tls.ts";
import { engineVariables, runsVllm } from "./arcana-engine.ts";
import { downloadMounts } from "./downloads.ts";
import { cacheMounts, cacheVariables, fetchers } from "./model-cache.ts";
import {
  choosePinnedTemplate,
  hashOf,
  type PinnedTemplate,
  pinAnnotations,
  type RenderedTemplate,
} from "./pinned-template.ts";
import { placement, priority, resourcesOf, sharedMemoryMounts, topologySpread } from "./placement.ts";
import {
  apiPorts,
  containerSecurity,
  drainHook,
  httpProbe,
  livenessProbe,
  type Mounted,
  modelPorts,
  mountsOf,
  podSecurity,
  secretMount,
  temporaryMount,
  terminationSeconds,
  tokenMount,
  variables,
  volumesOf,
} from "./pod.ts";
import { overridden, parseOverride } from "./pod-template.ts";
import { limitMounts, limitVariables } from "./rate-limit.ts";
import { collectorMounts, collectorSidecar, telemetryVariables } from "./telemetry.ts";

type DeploymentChild = Child<{ spec: NonNullable<V1Deployment["spec"]> }>;

export function apiSelector(owner: TtsDeployment): Record<string, string> {
  return { [labels.deployment]: owner.metadata.name, [labels.component]: "api" };
}

export function modelSelector(owner: TtsModelPool): Record<string, string> {
  return { [labels.deployment]: owner.spec.deployment, [labels.pool]: owner.spec.pool };
}

/**
 * Renders the Deployment of the API tier. Its pods keep their template while the license or `mayRollOut` does
 * not allow a change. Returns `undefined` if the Deployment does not exist and the license does not allow its
 * start. Throws `InvalidPatch` if the `podTemplate` of the user cannot be merged.
 */
export function apiDeployment(
  owner: TtsDeployment,
  live: Deployment | undefined,
  grant: LicenseAllowance,
  server: ServerImage,
  mayRollOut = true,
): DeploymentChild | undefined {
  if (grant.held && live === undefined) return undefined;
  return workload(owner, {
    name: children.apiDeployment(owner.metadata.name),
    component: "api",
    labels: {},
    selector: apiSelector(owner),
    pin: choosePinnedTemplate(renderApiTemplate(owner, server), live, grant.held || !mayRollOut),
    replicas: grant.replicas,
    progressDeadlineSeconds: 600,
    strategy: hasOneWriter(owner.spec.api)
      ? { type: "Recreate" }
      : rolling({ maxSurge: 1, maxUnavailable: 0 }),
  });
}

/** The part of a rollout plan that the Deployment of a pool contains. */
export interface ModelRollout {
  readonly stable: PinnedTemplate | undefined;
  readonly replicas: number;
  readonly maxUnavailable: number | string;
}

/** Renders the Deployment of a pool. Returns `undefined` while the license does not allow its start. */
export function modelDeployment(
  owner: TtsModelPool,
  { stable, replicas, maxUnavailable }: ModelRollout,
): DeploymentChild | undefined {
  const { progressDeadlineSeconds, maxSurge } = owner.spec.rollout;
  if (stable === undefined) return undefined;
  return workload(owner, {
    name: owner.metadata.name,
    component: "model",
    labels: poolLabels(owner),
    selector: modelSelector(owner),
    pin: stable,
    replicas,
    progressDeadlineSeconds,
    strategy: rolling({ maxSurge, maxUnavailable }),
  });
}

/**
 * Prepares the pod template of a pool. `render` throws `InvalidPatch` if the `podTemplate` of the user cannot
 * be merged. `claimName` is the claim of the TtsModelCache that the pool names.
 */
export function renderModelTemplate(
  owner: TtsModelPool,
  server: ServerImage,
  claimName?: string,
): RenderedTemplate {
  return {
    specHash: modelSettings(owner, claimName),
    render: () =>
      restarted(
        overridden(modelTemplate(owner, server, claimName), parseOverride(owner.spec.podTemplate)),
        owner,
      ),
  };
}

/** Prepares the pod template of the API tier, like {@link renderModelTemplate}. */
export function renderApiTemplate(owner: TtsDeployment, server: ServerImage): RenderedTemplate {
  return {
    specHash: apiSettings(owner),
    render: () => restarted(overridden(apiTemplate(owner, server), owner.spec.api.podTemplate), owner),
  };
}

/**
 * Adds the annotation of a restart request. A new value replaces the pods, like `kubectl rollout restart`.
 */
function restarted(template: V1PodTemplateSpec, owner: Owner): V1PodTemplateSpec {
  const restart = restartOf(owner);
  if (restart === undefined) return template;
  const annotations = { ...template.metadata?.annotations, [requests.restart]: restart };
  return { ...template, metadata: { ...template.metadata, annotations } };
}

/**
 * Returns the hash of the settings that the pod template of the API tier depends on. Replicas, scaling,
 * Service, route and rollout are not among them.
 */
export function apiSettings(owner: TtsDeployment): string {
  const { spec } = owner;
  const { api, license, imagePullSecrets, imagePullPolicy, fixedUserIds, availability } = spec;
  const { replicas, scaling, service, route, rollout, ...settings } = api;
  const { topologySpread } = availability;
  const spreading = topologySpread && { availability: { topologySpread } };
  const images = { imagePullSecrets, imagePullPolicy, fixedUserIds };
  const relevant = { api: settings, license, ...images, ...spreading };
  return settingsHash(owner, withoutDefaults(TtsDeploymentSpecSchema, relevant));
}

/** Returns the hash of the spec of a pool, without replicas and scaling. */
export function ownSettings({ spec }: Pick<TtsModelPool, "spec">): string {
  const { replicas, scaling, ...settings } = spec;
  return hashOf(withoutDefaults(TtsModelPoolSpecSchema, settings));
}

/** Returns the hash of the settings that the pod template of a pool depends on. */
export function modelSettings(owner: TtsModelPool, claimName?: string): string {
  return settingsHash(owner, templateSettings(owner, claimName));
}

/** Returns the same hash as {@link modelSettings} for a pool without restart requests. */
export function poolSettings(owner: Pick<TtsModelPool, "spec">, claimName?: string): string {
  return hashOf(templateSettings(owner, claimName));
}

/** @param claimName the claim of the pool's model cache. */
function templateSettings({ spec }: Pick<TtsModelPool, "spec">, claimName: string | undefined): unknown {
  const { replicas, scaling, rollout, podDisruptionBudget, ...settings } = spec;
  const own = withoutDefaults(TtsModelPoolSpecSchema, settings);
  return claimName === undefined ? own : { settings: own, claimName };
}

function settingsHash(owner: Owner, settings: unknown): string {
  const restart = restartOf(owner);
  return hashOf(restart === undefined ? settings : { settings, restart });
}

interface WorkloadParts {
  name: string;
  component: "api" | "model";
  labels: Record<string, string>;
  selector: Record<string, string>;
  pin: PinnedTemplate;
  replicas: number;
  progressDeadlineSeconds: number;
  strategy: V1DeploymentStrategy;
}

function rolling(rollingUpdate: {
  maxSurge: number | string;
  maxUnavailable: number | string;
}): V1DeploymentStrategy {
  return { type: "RollingUpdate", rollingUpdate };
}

function workload(owner: Owner, parts: WorkloadParts): DeploymentChild {
  const { pin, replicas, strategy, progressDeadlineSeconds } = parts;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: childMetadata(owner, parts.name, parts.component, {
      labels: parts.labels,
      annotations: pinAnnotations(pin),
    }),
    spec: {
      replicas,
      revisionHistoryLimit: 5,
      progressDeadlineSeconds,
      selector: { matchLabels: parts.selector },
      strategy,
      template: pin.template,
    },
  };
}

/**
 * The liveness probe of the API container, which fails after a minute. A busy node may delay responses for
 * half a minute, and a restart would end every stream of the pod.
 */
const apiLiveness = { periodSeconds: 10, failureThreshold: 6, timeoutSeconds: 5 };

function apiTemplate(owner: TtsDeployment, ofOperator: ServerImage): V1PodTemplateSpec {
  const { api, imagePullSecrets } = owner.spec;
  const server = withSpec(ofOperator, owner.spec);
  const mounted = apiMounts(owner);
  const container: V1Container = {
    name: "api",
    ...imageOf(api.image, server, owner.spec),
    args: ["api"],
    ports: [...apiPorts, ...tlsContainerPorts(api.tls)],
    env: variables(apiVariables(owner)),
    resources: resourcesOf(api.resources),
    ...mountsOf(mounted),
    startupProbe: httpProbe("/livez", { periodSeconds: 1, failureThreshold: 120, timeoutSeconds: 2 }),
    readinessProbe: httpProbe("/ready", { periodSeconds: 3, failureThreshold: 2, timeoutSeconds: 3 }),
    livenessProbe: livenessProbe("/livez", apiLiveness),
    ...drainHook(api.drain),
    ...containerSecurity,
  };
  return {
    metadata: { labels: childLabels(owner, "api") },
    spec: {
      serviceAccountName: children.apiServiceAccount(owner.metadata.name),
      automountServiceAccountToken: true,
      ...podSecurity(server),
      ...priority(api.priorityClassName),
      ...topologySpread(owner.spec.availability.topologySpread, apiSelector(owner)),
      ...podOf(container, mounted, terminationSeconds(api.drain), imagePullSecrets),
    },
  };
}

/**
 * Returns the variables of the API container. The variables of the license are always set, because
 * `podTemplate` can only set variables that the operator does not set.
 */
function apiVariables({ metadata, spec }: TtsDeployment): Record<string, string> {
  return {
    [env.port]: String(ports.api),
    [env.routingConfigMap]: children.routing(metadata.name),
    [env.tokenDir]: paths.token,
    [env.licenseFile]: `${paths.license}/${spec.license?.secretRef.key ?? licenseKey}`,
    [env.licenseKeysFile]: `${paths.licenseKeys}/${jwksKey}`,
    [env.licenseGraceSeconds]: String(graceSecondsOf(spec)),
    ...(spec.license?.endpoint !== undefined && {
      [env.licenseEndpoint]: spec.license.endpoint,
      [env.licenseCheckSeconds]: String(durationSeconds(spec.license.checkInterval)),
    }),
    ...keyVariables(spec.api),
    ...tlsVariables(spec.api.tls),
    ...limitVariables(metadata, spec.api.rateLimit),
    ...(spec.api.trustedProxies && { [env.trustedProxies]: spec.api.trustedProxies.join(",") }),
    [env.drainSeconds]: String(spec.api.drain.maxStreamSeconds),
  };
}

/**
 * Returns the volumes of the API container. The volumes of license and keys are optional, so that a pod can
 * restart after the deletion of the Secret.
 */
function apiMounts({ metadata, spec }: TtsDeployment): Mounted[] {
  const routing = children.routing(metadata.name);
  return [
    tokenMount(children.token(metadata.name)),
    ...licenseMounts(spec),
    {
      volume: {
        name: "license-keys",
        configMap: { name: routing, items: [{ key: jwksKey, path: jwksKey }] },
      },
      mount: { name: "license-keys", mountPath: paths.licenseKeys, readOnly: true },
    },
    ...keyMounts(spec.api),
    ...tlsMounts(spec.api.tls),
    ...limitMounts(spec.api.rateLimit),
    temporaryMount,
  ];
}

function licenseMounts({ license }: TtsDeployment["spec"]): Mounted[] {
  if (license === undefined) return [];
  const { name, key } = license.secretRef;
  const items = [{ key, path: key }];
  return [secretMount("license", paths.license, { secretName: name, optional: true, items })];
}

/** The liveness routes of the model tiers (specification 4.6). */
const livenessPaths = { mist: "/ping", arcana: "/readyz" } as const;

function modelTemplate(
  owner: TtsModelPool,
  ofOperator: ServerImage,
  claimName: string | undefined,
): V1PodTemplateSpec {
  const server = withSpec(ofOperator, owner.spec);
  const { kind, deployment, drain, probes, accelerator, imagePullSecrets, env: more } = owner.spec;
  const { cache, telemetry, downloads } = owner.spec;
  const own = variables(modelVariables(owner)).concat(telemetryVariables(owner.spec));
  const users = (more ?? []) as V1EnvVar[];
  const mounted = [
    tokenMount(children.token(deployment)),
    temporaryMount,
    ...sharedMemoryMounts(owner.spec),
    ...cacheMounts(cache, claimName),
  ];
  const livenessPath = livenessPaths[kind];
  const container: V1Container = {
    name: kind,
    ...imageOf(owner.spec.image, server, owner.spec),
    args: [kind],
    ports: modelPorts(runsVllm(owner.spec)),
    env: [...own.filter(({ name }) => !users.some((userVariable) => userVariable.name === name)), ...users],
    resources: resourcesOf(engineResources(owner.spec), accelerator),
    ...mountsOf(mounted),
    startupProbe: httpProbe(livenessPath, probes.startup),
    readinessProbe: httpProbe("/ready", probes.readiness),
    livenessProbe: livenessProbe(livenessPath, probes.liveness),
    ...drainHook(drain),
    ...containerSecurity,
  };
  return {
    metadata: { labels: { ...childLabels(owner, "model"), ...poolLabels(owner) } },
    spec: {
      serviceAccountName: children.modelServiceAccount(deployment),
      automountServiceAccountToken: false,
      ...podSecurity(server),
      ...placement(accelerator),
      ...priority(owner.spec.priorityClassName),
      ...topologySpread(owner.spec.topologySpread, modelSelector(owner)),
      ...initContainers([
        ...fetchers(owner.spec, imageOf(undefined, server, owner.spec)),
        ...collectorSidecar(owner.spec, server),
      ]),
      ...podOf(
        container,
        [...mounted, ...collectorMounts(telemetry), ...downloadMounts(downloads)],
        terminationSeconds(drain),
        imagePullSecrets,
      ),
    },
  };
}

function initContainers(list: V1Container[]): Pick<V1PodSpec, "initContainers"> {
  return list.length > 0 ? { initContainers: list } : {};
}

function modelVariables({ spec }: TtsModelPool): Record<string, string> {
  return {
    [env.port]: String(ports.model),
    [env.tokenDir]: paths.token,
    [env.maxConcurrentStreams]: String(spec.maxConcurrentStreams),
    [env.drainSeconds]: String(spec.drain.maxStreamSeconds),
    ...cacheVariables(spec.cache),
    ...engineVariables(spec),
  };
}

type ImageSettings = Pick<TtsModelPool["spec"], "imagePullPolicy" | "fixedUserIds">;

/** Returns the settings of the operator with the settings of the spec, which have priority. */
export function withSpec(server: ServerImage, { imagePullPolicy, fixedUserIds }: ImageSettings): ServerImage {
  return {
    ...server,
    ...(imagePullPolicy && { pullPolicy: imagePullPolicy, collectorPullPolicy: imagePullPolicy }),
    ...(fixedUserIds !== undefined && { fixedUserIds }),
  };
}

function imageOf(
  image: string | undefined,
  server: ServerImage,
  { imagePullPolicy }: ImageSettings,
): Pick<V1Container, "image" | "imagePullPolicy"> {
  if (image !== undefined) return { image, ...(imagePullPolicy && { imagePullPolicy }) };
  return { image: server.image, ...(server.pullPolicy && { imagePullPolicy: server.pullPolicy }) };
}

function podOf(
  container: V1Container,
  mounted: readonly Mounted[],
  terminationGracePeriodSeconds: number,
  imagePullSecrets: TtsDeployment["spec"]["imagePullSecrets"],
): V1PodSpec {
  return {
    enableServiceLinks: false,
    terminationGracePeriodSeconds,
    ...(imagePullSecrets && { imagePullSecrets }),
    containers: [container],
    ...volumesOf(mounted),
  };
}
