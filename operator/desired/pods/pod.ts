import { env, paths, ports } from "../../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";
import type {
  V1Container,
  V1EnvVar,
  V1PodSpec,
  V1Probe,
  V1Volume,
  V1VolumeMount,
} from "../../facts/kubernetes-object.ts";

/** The common parts of API pods and model pods: the Pod Security Standard `restricted`, drain, and mounts. */

/** The user ID of the image. It is numeric, because `runAsNonRoot` cannot check the name of a user. */
const user = 65532;
/** The time in which a pod closes sockets and writes logs after its last stream. */
const marginSeconds = 15;

/**
 * Returns the security context of a pod. `fixedUserIds` is false if the cluster assigns user IDs and rejects
 * other IDs, as OpenShift does (SCC `restricted-v2`).
 */
export function podSecurity({ fixedUserIds = true }: { readonly fixedUserIds?: boolean }) {
  return {
    securityContext: {
      runAsNonRoot: true,
      ...(fixedUserIds && { runAsUser: user, runAsGroup: user, fsGroup: user }),
      seccompProfile: { type: "RuntimeDefault" },
    },
  } satisfies Partial<V1PodSpec>;
}

export const containerSecurity = {
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  },
} satisfies Partial<V1Container>;

type Drain = TtsModelPoolSpec["drain"];

/**
 * Returns the termination grace period of a pod. During the preStop hook, the pod continues to serve until
 * load balancers have removed its endpoint. Then the pod receives the stop signal, and streams may continue
 * for `maxStreamSeconds`.
 */
export function terminationSeconds({ endpointDelaySeconds, maxStreamSeconds }: Drain): number {
  return endpointDelaySeconds + maxStreamSeconds + marginSeconds;
}

export function drainHook({ endpointDelaySeconds }: Drain) {
  return {
    lifecycle: { preStop: { sleep: { seconds: endpointDelaySeconds } } },
  } satisfies Partial<V1Container>;
}

/** Returns the variables in a stable order, so that the revision is stable. */
export function variables(values: Record<string, string>): V1EnvVar[] {
  return [...Object.entries(values).map(([name, value]) => ({ name, value })), ...whereVariables];
}

/** Variables with the name and namespace of the pod. */
export const whereVariables: V1EnvVar[] = [
  { name: env.namespace, valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
  { name: env.podName, valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
];

export interface Mounted {
  readonly volume: V1Volume;
  readonly mount: V1VolumeMount;
}

/** The mode of mounted Secrets: only the user and the group of the pod may read the files. */
const secretMode = 0o440;

export function secretMount(
  name: string,
  mountPath: string,
  secret: { secretName: string; optional?: boolean; items?: { key: string; path: string }[] },
): Mounted {
  return {
    volume: { name, secret: { ...secret, defaultMode: secretMode } },
    mount: { name, mountPath, readOnly: true },
  };
}

export function tokenMount(secretName: string): Mounted {
  return secretMount("token", paths.token, { secretName });
}

export const temporaryMount: Mounted = {
  volume: { name: "tmp", emptyDir: { sizeLimit: "1Gi" } },
  mount: { name: "tmp", mountPath: "/tmp" },
};

export function volumesOf(mounted: readonly Mounted[]) {
  return { volumes: mounted.map(({ volume }) => volume) };
}

export function mountsOf(mounted: readonly Mounted[]) {
  return { volumeMounts: mounted.map(({ mount }) => mount) };
}

export function httpProbe(path: string, timing: Omit<V1Probe, "httpGet">): V1Probe {
  return { httpGet: { path, port: "http", scheme: "HTTP" }, ...timing };
}

/**
 * The grace period of a container that does not respond to its liveness probe. It is short, because such a
 * container cannot finish streams.
 */
const hungSeconds = 10;

export function livenessProbe(path: string, timing: Omit<V1Probe, "httpGet">): V1Probe {
  return { ...httpProbe(path, timing), terminationGracePeriodSeconds: hungSeconds };
}

/** The name of the port with the /metrics of vLLM. */
export const vllmPortName = "vllm";

export const apiPorts = [{ name: "http", containerPort: ports.api, protocol: "TCP" }];

export function modelPorts(hasVllm: boolean): NonNullable<V1Container["ports"]> {
  const http = { name: "http", containerPort: ports.model, protocol: "TCP" };
  return hasVllm ? [http, { name: vllmPortName, containerPort: ports.vllm, protocol: "TCP" }] : [http];
}
