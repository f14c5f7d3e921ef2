import { stringify } from "yaml";
import { arcanaEnv, env, otelEnv, paths, ports, telemetryEnv } from "../../../config/contract/names.ts";
import { collectorPort } from "../../../config/contract/otlp.ts";
import type { TtsDeploymentSpec } from "../../../crds/tts-deployment.ts";
import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";
import type { V1Container, V1EnvVar } from "../../facts/kubernetes-object.ts";
import type { ServerImage } from "../../facts/settings.ts";
import { runsVllm } from "./arcana-engine.ts";
import { type CollectorSettings, caFile, collectorConfig, collectorEnv, tokenFile } from "./collector.ts";
import { portOf } from "./downloads.ts";
import { resourcesOf } from "./placement.ts";
import { containerSecurity, type Mounted, mountsOf, secretMount, whereVariables } from "./pod.ts";

/**
 * The parts of model pods that send metrics and traces: the variables of specification 6.4, and the collector
 * as a native sidecar.
 */

/** The image of the collector. The tests check the configuration with this version. */
export const defaultCollectorImage = "otel/opentelemetry-collector-contrib:0.150.0";

type Telemetry = NonNullable<TtsModelPoolSpec["telemetry"]>;

/**
 * Returns the telemetry settings that affect pods, or `undefined` if no setting affects them. The settings of
 * monitors are not among them, so a change of a monitor replaces no pod.
 */
export function podTelemetry(telemetry: TtsDeploymentSpec["telemetry"]): Telemetry | undefined {
  if (telemetry === undefined) return undefined;
  const { serviceMonitor, ...pods } = telemetry;
  const affectsPods =
    pods.collector.enabled || pods.endpoint !== undefined || hasAny(pods.resourceAttributes);
  return affectsPods ? pods : undefined;
}

function hasAny(map: object): boolean {
  return Object.keys(map).length > 0;
}

/**
 * Returns the variables for telemetry. They refer to the variables with the name and namespace of the pod,
 * and must therefore be after them in the list.
 */
export function telemetryVariables({ kind, pool, telemetry }: TtsModelPoolSpec): V1EnvVar[] {
  const values: Record<string, string> = {
    ...(kind === "arcana" && { [arcanaEnv.vllmPort]: String(ports.vllm) }),
    ...(kind === "arcana" && telemetry && sendingVariables(telemetry)),
    ...(telemetry && { [otelEnv.resourceAttributes]: resourceAttributes(pool, telemetry) }),
  };
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}

function sendingVariables({ protocol, endpoint, collector }: Telemetry): Record<string, string> {
  const port = protocol === "grpc" ? ports.otlpGrpc : ports.otlpHttp;
  const to = collector.enabled ? `http://127.0.0.1:${port}` : endpoint;
  if (to === undefined) return {};
  return {
    [telemetryEnv.protocol]: protocol,
    [telemetryEnv.endpoint]: escaped(to),
    ...(collector.enabled && {
      [telemetryEnv.intervalMs]: String(1_000 * collector.scrapeIntervalSeconds),
    }),
  };
}

/** Attributes of the OpenTelemetry semantic conventions, with the variables that contain their values. */
const attributesFrom = {
  "k8s.namespace.name": env.namespace,
  "k8s.pod.name": env.podName,
  "service.instance.id": env.podName,
};
const poolAttribute = "svc.pool";

/**
 * Returns `name=value,name=value` with percent-encoded values (OpenTelemetry, "Resource SDK"). Kubernetes
 * inserts the values of the variables.
 */
function resourceAttributes(pool: string, { resourceAttributes }: Telemetry): string {
  const own = Object.entries(attributesFrom).map(([key, name]) => `${key}=$(${name})`);
  const users = Object.entries({ [poolAttribute]: pool, ...resourceAttributes });
  return [...own, ...users.map(([key, value]) => `${key}=${encodeURIComponent(value)}`)].join(",");
}

/** Escapes `$`, because Kubernetes replaces `$(NAME)` in the values of variables. */
function escaped(value: string): string {
  return value.replaceAll("$", "$$$$");
}

/** The operator's settings of the collector's image. */
type CollectorImage = Pick<ServerImage, "collectorImage" | "collectorPullPolicy">;

type Enabled = Telemetry & { collector: CollectorSettings["collector"] };

function withCollector(telemetry: Telemetry | undefined): Enabled | undefined {
  return telemetry?.collector.enabled && telemetry.collector.exporter !== undefined
    ? (telemetry as Enabled)
    : undefined;
}

/**
 * Returns the native sidecar: an init container that keeps running. It starts before the model and stops
 * after the model, so that it also sends the last metrics of a drain. The configuration is a variable of the
 * container, so that the configuration of a pod never changes.
 */
export function collectorSidecar(
  spec: Pick<TtsModelPoolSpec, "kind" | "env" | "pool" | "telemetry">,
  { collectorImage = defaultCollectorImage, collectorPullPolicy }: CollectorImage = {},
): V1Container[] {
  const { kind, pool, telemetry } = spec;
  const enabled = withCollector(telemetry);
  if (enabled === undefined) return [];
  const { collector } = enabled;
  const attributes = { [poolAttribute]: pool, ...enabled.resourceAttributes };
  const hasVllm = runsVllm(spec);
  const config = collectorConfig({
    kind,
    hasVllm,
    collector,
    resourceAttributes: attributes,
    attributesFrom,
  });
  return [
    {
      name: "collector",
      image: collector.image ?? collectorImage,
      ...(collector.image === undefined && collectorPullPolicy && { imagePullPolicy: collectorPullPolicy }),
      args: [`--config=env:${collectorEnv.config}`],
      restartPolicy: "Always",
      env: [
        { name: collectorEnv.config, value: escaped(stringify(config)) },
        ...whereVariables,
        ...credentialVariables(collector.auth),
      ],
      ports: [{ name: "collector", containerPort: ports.collectorHealth, protocol: "TCP" }],
      resources: resourcesOf(collector.resources),
      livenessProbe: {
        httpGet: { path: "/", port: "collector", scheme: "HTTP" },
        initialDelaySeconds: 10,
        periodSeconds: 20,
        timeoutSeconds: 5,
        failureThreshold: 3,
      },
      ...mountsOf(collectorMounts(telemetry)),
      ...containerSecurity,
    },
  ];
}

/**
 * Returns the variables with credentials. They are optional, because a model can serve without sending
 * metrics.
 */
function credentialVariables(auth: CollectorSettings["collector"]["auth"]): V1EnvVar[] {
  const from = (name: string, secret: string, key: string): V1EnvVar => ({
    name,
    valueFrom: { secretKeyRef: { name: secret, key, optional: true } },
  });
  const headers = (auth?.headers ?? []).map(({ secretRef }, index) =>
    from(collectorEnv.header(index), secretRef.name, secretRef.key),
  );
  const pair = (secret: string, first: [string, string], second: [string, string]) => [
    from(first[0], secret, first[1]),
    from(second[0], secret, second[1]),
  ];
  const { username, password, clientId, clientSecret } = collectorEnv;
  const { basic, oauth2 } = auth ?? {};
  if (basic) return pair(basic.secretRef.name, [username, "username"], [password, "password"]);
  if (oauth2) return pair(oauth2.secretRef.name, [clientId, "clientId"], [clientSecret, "clientSecret"]);
  return headers;
}

/** Returns the volumes that the collector's container mounts. */
export function collectorMounts(telemetry: Telemetry | undefined): Mounted[] {
  const enabled = withCollector(telemetry);
  if (enabled === undefined) return [];
  const { auth, exporter } = enabled.collector;
  const ca = exporter.caSecretRef;
  return [
    ...credentialFiles(auth),
    ...(ca === undefined
      ? []
      : [
          secretMount("telemetry-ca", paths.telemetryCa, {
            secretName: ca.name,
            items: [{ key: ca.key, path: caFile }],
          }),
        ]),
  ];
}

/**
 * Returns the volume of a bearer token. A file needs no escaping, but the collector reads only bearer tokens
 * from files.
 */
function credentialFiles(auth: CollectorSettings["collector"]["auth"]): Mounted[] {
  if (auth?.bearer === undefined) return [];
  const { name: secretName, key } = auth.bearer.secretRef;
  const items = [{ key, path: tokenFile }];
  return [secretMount("telemetry-auth", paths.telemetryAuth, { secretName, optional: true, items })];
}

/** Returns the ports of the servers to which pods send telemetry, without the port of DNS. */
export function telemetryPorts({ protocol, endpoint, collector }: Telemetry): number[] {
  const tokens = collector.auth?.oauth2?.tokenUrl;
  if (!collector.enabled) return endpoint === undefined ? [] : [collectorPort(endpoint, protocol)];
  return [collector.exporter?.endpoint, tokens].filter((url) => url !== undefined).map(portOf);
}

/** Returns the names of the Secrets in the telemetry settings. */
export function telemetrySecrets(telemetry: TtsDeploymentSpec["telemetry"]): string[] {
  const collector = withCollector(telemetry)?.collector;
  if (collector === undefined) return [];
  const { bearer, basic, oauth2, headers = [] } = collector.auth ?? {};
  const refs = [bearer, basic, oauth2, ...headers].flatMap((kind) => (kind ? [kind.secretRef.name] : []));
  const ca = collector.exporter.caSecretRef;
  return [...new Set([...refs, ...(ca ? [ca.name] : [])])];
}
