import { paths } from "../../../config/contract/names.ts";
import type { DownloadsSpec } from "../../../crds/downloads-fields.ts";
import type { V1EnvVar } from "../../facts/kubernetes-object.ts";
import type { Mounted } from "./pod.ts";

/** The environment and the mounts of containers that fetch model files. */

type Downloads = DownloadsSpec | undefined;

const volumeName = "downloads-ca";
const caName = "ca.crt";
const caFile = `${paths.downloadsCa}/${caName}`;

/** Returns the variables that Node, pip and npm read. The order is stable, so that the revision is stable. */
export function downloadVariables(downloads: Downloads): V1EnvVar[] {
  const { proxy, noProxy, caBundle, registries = {} } = downloads ?? {};
  const hosts = noProxy?.join(",");
  const values = {
    ...(proxy !== undefined && { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NODE_USE_ENV_PROXY: "1" }),
    ...(proxy !== undefined && hosts && { NO_PROXY: hosts }),
    ...(caBundle && { NODE_EXTRA_CA_CERTS: caFile, PIP_CERT: caFile }),
    ...(registries.pypi !== undefined && { PIP_INDEX_URL: registries.pypi }),
    ...(registries.npm !== undefined && { npm_config_registry: registries.npm }),
  };
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}

/** Returns the mount of the certificate authorities. */
export function downloadMounts(downloads: Downloads): Mounted[] {
  const { caBundle } = downloads ?? {};
  if (caBundle === undefined) return [];
  const { configMapName: name, key } = caBundle;
  return [
    {
      volume: { name: volumeName, configMap: { name, items: [{ key, path: caName }] } },
      mount: { name: volumeName, mountPath: paths.downloadsCa, readOnly: true },
    },
  ];
}

/** Returns the ports of the proxy and of the registries. */
export function downloadPorts(downloads: Downloads): number[] {
  const { proxy, registries = {} } = downloads ?? {};
  return [proxy, registries.pypi, registries.npm].filter((url) => url !== undefined).map(portOf);
}

/** Returns the port of a URL. */
export function portOf(url: string): number {
  const [, scheme, port] = /^(\w+):\/\/[^/]*?(?::(\d+))?(?:\/|$)/.exec(url) ?? [];
  if (port !== undefined) return Number(port);
  return scheme === "http" ? 80 : 443;
}
