/** An object of the cluster, as far as tests look into it. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    generation?: number;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    resourceVersion?: string;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind
  spec?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind
  status?: any;
  // biome-ignore lint/suspicious/noExplicitAny: Secrets and ConfigMaps
  data?: any;
}
