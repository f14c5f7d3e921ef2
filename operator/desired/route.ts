import { children, ports, publicPaths } from "../../config/contract/names.ts";
import { type Child, childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject, V1Ingress } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

type Ingress = Child<Pick<V1Ingress, "spec">>;

/** The Ingress by which clients outside the cluster reach the API. */
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

/** The route of the API on a Gateway. It includes defaults, because each list of an HTTPRoute has one owner as a whole. */
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
            // a stream may last long, so there is no limit here
            timeouts: { request: "0s" },
          },
        ],
      },
    },
  ];
}
