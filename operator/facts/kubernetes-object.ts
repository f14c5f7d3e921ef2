/**
 * Types of Kubernetes objects, which are plain JSON. Outside `cluster/`, only this file imports the types of
 * the client library.
 */
export type {
  V1Container,
  V1Deployment,
  V1DeploymentStrategy,
  V1EnvVar,
  V1Ingress,
  V1Job,
  V1NetworkPolicyEgressRule,
  V1NetworkPolicyPeer,
  V1NetworkPolicyPort,
  V1NetworkPolicySpec,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1PodSpec,
  V1PodTemplateSpec,
  V1Probe,
  V1ResourceRequirements,
  V1Role,
  V1RoleBinding,
  V1Service,
  V1TopologySpreadConstraint,
  V1Volume,
  V1VolumeMount,
} from "@kubernetes/client-node";

export type OwnerReference = {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
};

/**
 * The fields that one field manager owns (Kubernetes API, "Server-Side Apply"). `fieldsV1` is a tree with
 * keys that begin with `f:`, `k:` or `v:`.
 */
export type ManagedFieldsEntry = {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: string;
  fieldsType?: string;
  fieldsV1?: Record<string, unknown>;
  subresource?: string;
};

/** The metadata of an object. Times are RFC 3339 strings, as the API server wrote them. */
export type ManifestMetadata = {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
};

/** Any Kubernetes object. Unknown fields are kept unchanged. */
export type KubernetesObject = {
  apiVersion: string;
  kind: string;
  metadata: ManifestMetadata;
  [field: string]: unknown;
};

/**
 * A reference to an object. `apiVersion` is only for messages and events. `resources.ts` contains the paths
 * of requests.
 */
export type Ref = {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name: string;
};
