import { children, publicPaths } from "../../config/contract/names.ts";
import { type Child, childMetadata } from "../facts/child-metadata.ts";
import type { V1Ingress } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

type Ingress = Child<Pick<V1Ingress, "spec">>;

/** How callers from outside the cluster reach the API by its host names. */
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
