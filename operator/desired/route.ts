import { children, ports, publicPaths } from "../../config/contract/names.ts";
import { type Child, childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject, V1Ingress } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

type Ingress = Child<Pick<V1Ingress, "spec">>;

/** Returns the Ingress with which clients outside the cluster reach the API, if the spec enables it. */
export function apiIngress(owner: TtsDeployment): Ingress[] {
  const { route } = owner.spec.api;
  if (route?.ingress === undefined) return [];
  const { hostnames, ingress } = route;
  const { className, annotations, tlsSecretName } = ingress;
  const name = children.apiService(owner.metadata.name);
  const backend = { service: { name, port: { name: "http" } } };
  return [
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      metadata: childMetadata(owner, name, "api", { annotations }),
      spec: {
        ...(className !== undefined && { ingressClassName: className }),
        ...(tlsSecretName !== undefined && { tls: [{ hosts: hostnames, secretName: tlsSecretName }] }),
        rules: hostnames.map((host) => ({
          host,
          http: { paths: publicPaths.map((path) => ({ path, pathType: "Prefix", backend })) },
        })),
      },
    },
  ];
}

const gateway = { group: "gateway.networking.k8s.io", kind: "Gateway" };

/**
 * Returns the HTTPRoute of the API, if the spec names a Gateway. It contains default values, because each
 * list of an HTTPRoute has one owner for all of its items.
 */
export function apiHttpRoute(owner: TtsDeployment): KubernetesObject[] {
  const { route } = owner.spec.api;
  if (route?.gatewayRef === undefined) return [];
  const name = children.apiService(owner.metadata.name);
  return [
    {
      apiVersion: `${gateway.group}/v1`,
      kind: "HTTPRoute",
      metadata: childMetadata(owner, name, "api"),
      spec: {
        parentRefs: [{ ...gateway, ...route.gatewayRef }],
        hostnames: route.hostnames,
        rules: [
          {
            matches: publicPaths.map((value) => ({ path: { type: "PathPrefix", value } })),
            backendRefs: [{ group: "", kind: "Service", name, port: ports.api, weight: 1 }],
            // The route has no time limit, because a stream may take long.
            timeouts: { request: "0s" },
          },
        ],
      },
    },
  ];
}
