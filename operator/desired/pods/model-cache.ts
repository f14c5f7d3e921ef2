import { env, paths } from "../../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";
import type { V1Container, V1PodTemplateSpec, V1Volume } from "../../facts/kubernetes-object.ts";
import { downloadMounts, downloadVariables, portOf } from "./downloads.ts";
import { containerSecurity, type Mounted } from "./pod.ts";

/** The volume for model files, and the init containers that fetch them before the model starts. */

type Cache = TtsModelPoolSpec["cache"];
type Source = NonNullable<NonNullable<Cache>["sources"]>[number];

const volumeName = "models";
/** The resources of an init container. `svc-tts fetch` only copies data, so it needs little memory. */
const fetchResources = { requests: { cpu: "100m", memory: "128Mi" } };
export const fetchContainerPrefix = "fetch-";

/** Returns the volume for model files. `claimName` is the claim of the TtsModelCache that the pool names. */
export function cacheMounts(cache: Cache, claimName?: string): Mounted[] {
  if (cache === undefined) return [];
  return [
    {
      volume: volumeOf(cache, claimName),
      mount: { name: volumeName, mountPath: paths.models, readOnly: true },
    },
  ];
}

function volumeOf(
  { imageVolume, persistentVolumeClaim, emptyDir }: NonNullable<Cache>,
  claimName: string | undefined,
): V1Volume {
  const name = volumeName;
  if (claimName !== undefined) return { name, persistentVolumeClaim: { claimName } };
  if (imageVolume) return { name, image: imageVolume };
  if (persistentVolumeClaim) return { name, persistentVolumeClaim };
  return { name, emptyDir: emptyDir ?? {} };
}

/** Returns the claim that the pods of a template mount for model files. */
export function mountedClaim({ spec }: V1PodTemplateSpec): string | undefined {
  return spec?.volumes?.find(({ name }) => name === volumeName)?.persistentVolumeClaim?.claimName;
}

export function cacheVariables(cache: Cache): Record<string, string> {
  return cache === undefined ? {} : { [env.voicesDir]: paths.models };
}

/** Returns one init container for each source, so that each log and each restart belongs to one source. */
export function fetchers(
  { cache, downloads }: Pick<TtsModelPoolSpec, "cache" | "downloads">,
  image: Pick<V1Container, "image" | "imagePullPolicy">,
): V1Container[] {
  const env = downloadVariables(downloads);
  const mounts = downloadMounts(downloads).map(({ mount }) => mount);
  return (cache?.sources ?? []).map((source, index) => {
    const { volumeMounts = [], ...container } = fetcher(source, index, image);
    return { ...container, ...(env.length > 0 && { env }), volumeMounts: [...volumeMounts, ...mounts] };
  });
}

function fetcher(
  { secretRef, ...source }: Source,
  index: number,
  image: Pick<V1Container, "image" | "imagePullPolicy">,
): V1Container {
  return {
    name: `${fetchContainerPrefix}${index}`,
    ...image,
    args: ["fetch", "--into", paths.models, ...argumentsOf(source)],
    ...(secretRef && { envFrom: [{ secretRef }] }),
    resources: fetchResources,
    volumeMounts: [{ name: volumeName, mountPath: paths.models }],
    // With this policy, the status of the pool shows the last line of the log.
    terminationMessagePolicy: "FallbackToLogsOnError",
    ...containerSecurity,
  };
}

function argumentsOf({ url, path, sha256, endpoint }: Omit<Source, "secretRef">): string[] {
  const flags = { source: url, path, sha256, endpoint };
  return Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}`, value]));
}

/** Returns the ports for fetching, in addition to DNS. */
export function fetchPorts(caches: readonly (Pick<NonNullable<Cache>, "sources"> | undefined)[]): number[] {
  const sources = caches.flatMap((cache) => cache?.sources ?? []);
  // A registry may issue its tokens, and a repository may serve its files, from other hosts over HTTPS.
  return sources.flatMap(({ url, endpoint }) => [443, portOf(endpoint ?? url)]);
}
