import { env, paths, ports } from "../../../config/contract/names.ts";
import type { TtsDeployment } from "../../facts/observed.ts";
import { type Mounted, secretMount } from "./pod.ts";

/** The TLS listener of the API pods. Probes, the operator and routes use plain HTTP. */

type Tls = TtsDeployment["spec"]["api"]["tls"];

/** The name of the port in the pod and in the Service. */
const tlsPortName = "https";
/** The keys of a Secret of the type `kubernetes.io/tls`. */
const [certKey, privateKey] = ["tls.crt", "tls.key"];
/** The port of the Service. It is the default port of `https`, so the URLs of clients need no port. */
const servicePort = 443;

export function tlsVariables(tls: Tls): Record<string, string> {
  if (tls === undefined) return {};
  return {
    [env.tlsCert]: `${paths.tls}/${certKey}`,
    [env.tlsKey]: `${paths.tls}/${privateKey}`,
    [env.tlsPort]: String(ports.apiTls),
  };
}

/** Returns the mount of the Secret. It is required, because the pods cannot serve TLS without a certificate. */
export function tlsMounts(tls: Tls): Mounted[] {
  if (tls === undefined) return [];
  const items = [certKey, privateKey].map((key) => ({ key, path: key }));
  return [secretMount("tls", paths.tls, { secretName: tls.secretName, items })];
}

export function tlsContainerPorts(tls: Tls) {
  return tls === undefined
    ? []
    : [{ name: tlsPortName, containerPort: ports.apiTls, protocol: "TCP" as const }];
}

export function tlsServicePorts(tls: Tls) {
  return tls === undefined
    ? []
    : [{ name: tlsPortName, port: servicePort, targetPort: tlsPortName, protocol: "TCP" as const }];
}

/** Returns the ports of the pods that clients may reach. */
export function tlsIngressPorts(tls: Tls): number[] {
  return tls === undefined ? [] : [ports.apiTls];
}
