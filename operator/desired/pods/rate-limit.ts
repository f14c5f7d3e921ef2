import { env, paths } from "../../../config/contract/names.ts";
import type { TtsDeployment } from "../../facts/observed.ts";
import { type Mounted, secretMount } from "./pod.ts";

/** The default limits of API keys, and the store in which API pods share their counts. */

type RateLimit = TtsDeployment["spec"]["api"]["rateLimit"];

const passwordFile = "password";
const caFile = "ca.crt";

/**
 * Returns the variables for limits. The prefix of the keys separates the counts of deployments that share one
 * Valkey server.
 */
export function limitVariables(
  { namespace, name }: TtsDeployment["metadata"],
  limit: RateLimit,
): Record<string, string> {
  const { requestsPerMinute, streams, sockets, socketsPerSecond, valkey } = limit ?? {};
  return {
    ...(requestsPerMinute !== undefined && { [env.keyRequestsPerMinute]: String(requestsPerMinute) }),
    ...(streams !== undefined && { [env.keyStreams]: String(streams) }),
    ...(sockets !== undefined && { [env.keySockets]: String(sockets) }),
    ...(socketsPerSecond !== undefined && { [env.keySocketsPerSecond]: String(socketsPerSecond) }),
    ...(valkey && {
      [env.valkeyUrl]: valkey.url,
      [env.valkeyPrefix]: `svc-tts:${namespace}/${name}:`,
      ...(valkey.secretRef && { [env.valkeyPasswordFile]: `${paths.valkey}/${passwordFile}` }),
      ...(valkey.caSecretRef && { [env.valkeyCaFile]: `${paths.valkeyCa}/${caFile}` }),
    }),
  };
}

/**
 * Returns the volumes for Valkey. They are optional: without the password, each API pod counts separately,
 * and clients are still limited.
 */
export function limitMounts(limit: RateLimit): Mounted[] {
  const { secretRef, caSecretRef } = limit?.valkey ?? {};
  return [
    ...(secretRef ? [mount("valkey", paths.valkey, secretRef, passwordFile)] : []),
    ...(caSecretRef ? [mount("valkey-ca", paths.valkeyCa, caSecretRef, caFile)] : []),
  ];
}

function mount(
  volume: string,
  mountPath: string,
  secret: { name: string; key: string },
  path: string,
): Mounted {
  return secretMount(volume, mountPath, {
    secretName: secret.name,
    optional: true,
    items: [{ key: secret.key, path }],
  });
}

/** Returns the port of the Valkey server, to which API pods may connect. */
export function limitPorts(limit: RateLimit): number[] {
  const { url } = limit?.valkey ?? {};
  return url === undefined ? [] : [Number(new URL(url).port || 6379)];
}
