import { children, ports } from "../../config/contract/names.ts";
import { type Child, childMetadata, poolLabels } from "../facts/child-metadata.ts";
import type { V1Service } from "../facts/kubernetes-object.ts";
import type { TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { tlsServicePorts } from "./pods/api-tls.ts";
import { apiSelector, modelSelector } from "./pods/deployment.ts";

type Service = Child<Pick<V1Service, "spec">>;

/** Returns the Service of the API tier, which clients use. */
export function apiService(owner: TtsDeployment): Service {
  const { service, tls } = owner.spec.api;
  const { type, annotations } = service;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: childMetadata(owner, children.apiService(owner.metadata.name), "api", { annotations }),
    spec: {
      type,
      selector: apiSelector(owner),
      ports: [
        { name: "http", port: ports.api, targetPort: "http", protocol: "TCP" },
        ...tlsServicePorts(tls),
      ],
    },
  };
}

/** Returns the Service of one pool. API pods select a pod from the endpoints of this Service. */
export function modelService(owner: TtsModelPool): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: childMetadata(owner, owner.metadata.name, "model", { labels: poolLabels(owner) }),
    spec: {
      type: "ClusterIP",
      selector: modelSelector(owner),
      ports: [{ name: "http", port: ports.model, targetPort: "http", protocol: "TCP" }],
    },
  };
}
