/** Kinds of children that depend on the spec. Children of all other kinds always exist. */
export const optionalKinds: readonly string[] = [
  "HorizontalPodAutoscaler",
  "Ingress",
  "NetworkPolicy",
  "PodDisruptionBudget",
];

/** Kinds of other products, whose CRDs may be missing in the cluster. They depend on the spec too. */
export const foreignKinds: readonly string[] = ["HTTPRoute", "PodMonitor", "ScaledObject", "ServiceMonitor"];

/** Kinds of scalers. A pool has at most one, because KEDA rejects a ScaledObject next to a HorizontalPodAutoscaler. */
export const scalerKinds: readonly string[] = ["HorizontalPodAutoscaler", "ScaledObject"];
