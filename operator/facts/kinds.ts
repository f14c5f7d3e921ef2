/** Kinds of children that exist only if the spec enables them. Children of all other kinds always exist. */
export const optionalKinds: readonly string[] = [
  "HorizontalPodAutoscaler",
  "Ingress",
  "NetworkPolicy",
  "PodDisruptionBudget",
];

/**
 * Kinds of the children of a TtsModelCache. The operator watches them when it reconciles the first
 * TtsModelCache.
 */
export const cacheKinds: readonly string[] = ["Job", "PersistentVolumeClaim", "Pod"];

/**
 * Kinds of other products. Their CRDs may be missing in the cluster. These children also exist only if the
 * spec enables them.
 */
export const foreignKinds: readonly string[] = ["HTTPRoute", "PodMonitor", "ScaledObject", "ServiceMonitor"];

/**
 * Kinds of scalers. A pool has at most one scaler, because KEDA rejects a ScaledObject next to a
 * HorizontalPodAutoscaler.
 */
export const scalerKinds: readonly string[] = ["HorizontalPodAutoscaler", "ScaledObject"];
