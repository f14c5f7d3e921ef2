import { env, paths, ports } from "../../../config/contract/names.ts";
import type { TtsDeployment } from "../../facts/observed.ts";
import { type Mounted, secretMount } from "./pod.ts";

/** The TLS listener of the API pods. Probes, the operator and routes use plain HTTP. */

type Tls = TtsDeployment["spec"]["api"]["tls"];

/** Name of the port in the pod and in the Service. */
const tlsPortName = "https";
/** Keys of a Secret of the type `kubernetes.io/tls`. */
const [certKey, privateKey] = ["tls.crt", "tls.key"];
/** Port of the Service, which the addresses of clients then need not contain. */
const servicePort = 443;

export function tlsVariables(tls: Tls): Record<string, string> {
  if (tls === undefined) return {};
  return {
    [env.tlsCert]: `${paths.tls}/${certKey}`,
    [env.tlsKey]: `${paths.tls}/${privateKey}`,
    [env.tlsPort]: String(ports.apiTls),
  };
}

/** The volume is required: without a certificate the pods could not serve TLS. */
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

/** Ports of the pods that clients may reach. */
export function tlsIngressPorts(tls: Tls): number[] {
  return tls === undefined ? [] : [ports.apiTls];
}
