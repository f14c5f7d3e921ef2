import type { CachePlan } from "../../config/contract/model-cache.ts";
import { api, children, paths, ports } from "../../config/contract/names.ts";
import type { TtsClassSpec } from "../../crds/tts-class.ts";
import type { TtsModelCacheSpec } from "../../crds/tts-model-cache.ts";
import { type Child, cacheChildMetadata, cacheLabels } from "../facts/child-metadata.ts";
import type {
  V1Job,
  V1PersistentVolumeClaim,
  V1PodSpec,
  V1PodTemplateSpec,
} from "../facts/kubernetes-object.ts";
import type { Pod, TtsModelCache } from "../facts/observed.ts";
import type { ServerImage } from "../facts/settings.ts";
import { withSpec } from "./pods/deployment.ts";
import { downloadMounts, downloadVariables } from "./pods/downloads.ts";
import { hashOf } from "./pods/pinned-template.ts";
import { containerSecurity, podSecurity, temporaryMount } from "./pods/pod.ts";

/** The children of a TtsModelCache: its claim, and the Jobs that fetch its files. */

/** Annotations of a Job: the contents that it fetches, and the claim that it fills. */
const annotations = {
  contents: `${api.group}/contents`,
  claim: `${api.group}/claim-uid`,
} as const;

/** Returns a hash of the files that the cache must contain. */
export function contentsOf({ preset, acceptLicense, sources }: TtsModelCacheSpec): string {
  return hashOf({ preset, acceptLicense, sources });
}

export function claimNameOf({ metadata, spec }: TtsModelCache): string {
  return spec.storage.existingClaim?.claimName ?? children.cacheClaim(metadata.name);
}

/** Returns the claim that the operator creates, if the cache has no existing claim. */
export function cacheClaim(
  owner: TtsModelCache,
): Child<{ spec: NonNullable<V1PersistentVolumeClaim["spec"]> }> | undefined {
  const { claim } = owner.spec.storage;
  if (claim === undefined) return undefined;
  const { size, storageClassName, accessModes } = claim;
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: cacheChildMetadata(owner, claimNameOf(owner)),
    spec: {
      accessModes: [...accessModes],
      resources: { requests: { storage: size } },
      ...(storageClassName !== undefined && { storageClassName }),
    },
  };
}

export interface FetchAttempt {
  /** The number of failed attempts of this generation. */
  readonly attempt: number;
  readonly claimUid: string;
  /**
   * A pod that already mounts the claim, if only one node may mount the claim. The Job runs on the node of
   * this pod.
   */
  readonly beside: Pod | undefined;
}

/** The defaults of a class that apply to the pods of a TtsModelCache. */
type ClassDefaults = Pick<
  TtsClassSpec["defaults"],
  "imagePullPolicy" | "fixedUserIds" | "imagePullSecrets" | "downloads"
>;

export function fetchJob(
  owner: TtsModelCache,
  { attempt, claimUid, beside }: FetchAttempt,
  server: ServerImage,
  defaults: ClassDefaults = {},
): Child<{ spec: NonNullable<V1Job["spec"]> }> {
  const { name, generation } = owner.metadata;
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: cacheChildMetadata(owner, children.cacheJob(name, generation, attempt), {
      [annotations.contents]: contentsOf(owner.spec),
      [annotations.claim]: claimUid,
    }),
    spec: {
      // The operator starts the next attempt, with backoff, so that each failure appears in the status.
      backoffLimit: 0,
      ttlSecondsAfterFinished: keptSeconds,
      template: fetchTemplate(owner, beside, withSpec(server, defaults), defaults),
    },
  };
}

/** The time after which Kubernetes deletes a finished Job that no operator has deleted. */
const keptSeconds = 86_400;

/** Returns whether the Job fetches the current contents into this claim. */
export function isJobFor(
  { metadata }: { readonly metadata: TtsModelCache["metadata"] | { annotations?: Record<string, string> } },
  owner: TtsModelCache,
  claimUid: string,
): boolean {
  const found = metadata.annotations ?? {};
  return found[annotations.contents] === contentsOf(owner.spec) && found[annotations.claim] === claimUid;
}

const volumeName = "models";
/** The resources of a pod that only copies data. */
const copyResources = { requests: { cpu: "100m", memory: "128Mi" } };
/** The resources of a pod that installs a preset, which loads the model and rewrites its graph. */
const installResources = { requests: { cpu: "500m", memory: "1Gi" } };

function fetchTemplate(
  owner: TtsModelCache,
  beside: Pod | undefined,
  server: ServerImage,
  defaults: ClassDefaults,
): V1PodTemplateSpec {
  const { preset, imagePullSecrets = defaults.imagePullSecrets, downloads = defaults.downloads } = owner.spec;
  const authorities = downloadMounts(downloads);
  return {
    metadata: { labels: cacheLabels(owner) },
    spec: {
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...podSecurity(server),
      ...placement(owner.spec, beside),
      ...(imagePullSecrets && { imagePullSecrets }),
      containers: [
        {
          name: "fetch",
          image: server.image,
          ...(server.pullPolicy && { imagePullPolicy: server.pullPolicy }),
          args: argumentsOf(owner),
          // Clients of registries write to the home folder.
          env: [{ name: "HOME", value: temporaryMount.mount.mountPath }, ...downloadVariables(downloads)],
          envFrom: credentialsOf(owner.spec),
          ports: [{ name: "progress", containerPort: ports.model, protocol: "TCP" }],
          resources: preset === undefined ? copyResources : installResources,
          terminationMessagePolicy: "FallbackToLogsOnError",
          volumeMounts: [
            { name: volumeName, mountPath: paths.models },
            temporaryMount.mount,
            ...authorities.map(({ mount }) => mount),
          ],
          ...containerSecurity,
        },
      ],
      volumes: [
        { name: volumeName, persistentVolumeClaim: { claimName: claimNameOf(owner) } },
        temporaryMount.volume,
        ...authorities.map(({ volume }) => volume),
      ],
    },
  };
}

function argumentsOf({ metadata, spec }: TtsModelCache): string[] {
  const plan: CachePlan = {
    owner: metadata.uid,
    ...(spec.preset !== undefined && { preset: spec.preset }),
    ...(spec.acceptLicense !== undefined && { acceptLicense: spec.acceptLicense }),
    ...(spec.sources && {
      sources: spec.sources.map(({ secretRef, ...source }, index) => ({
        ...source,
        ...(secretRef && { credentials: credentialsPrefix(index) }),
      })),
    }),
  };
  return [
    ...["cache", "fill", "--into", paths.models, "--plan", JSON.stringify(plan)],
    ...["--result", "/dev/termination-log", "--port", String(ports.model)],
  ];
}

function credentialsPrefix(index: number): string {
  return `SOURCE_${index}_`;
}

function credentialsOf({ sources = [] }: TtsModelCacheSpec) {
  return sources.flatMap(({ secretRef }, index) =>
    secretRef === undefined ? [] : [{ prefix: credentialsPrefix(index), secretRef }],
  );
}

/**
 * Returns the constraints for the node. While a pod mounts a claim that only one node may mount, the fetching
 * pod must run on the same node, so it also gets the tolerations of that pod.
 */
function placement(
  { nodeSelector, tolerations = [] }: TtsModelCacheSpec,
  beside: Pod | undefined,
): Pick<V1PodSpec, "nodeSelector" | "tolerations" | "affinity"> {
  const node = beside?.spec?.nodeName;
  const all = [...tolerations, ...(beside?.spec?.tolerations ?? [])];
  const matchFields = node === undefined ? [] : [{ key: "metadata.name", operator: "In", values: [node] }];
  return {
    ...(node === undefined && nodeSelector && { nodeSelector }),
    ...(all.length > 0 && { tolerations: all }),
    ...(node !== undefined && {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] },
        },
      },
    }),
  };
}
