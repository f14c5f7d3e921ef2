/** Kinds that an owner has or has not, as its spec says; the others it always has. */
export const optionalKinds: readonly string[] = [
  "HorizontalPodAutoscaler",
  "Ingress",
  "NetworkPolicy",
  "PodDisruptionBudget",
];

/** The same, of products that the cluster may not have. */
export const foreignKinds: readonly string[] = ["HTTPRoute", "PodMonitor", "ScaledObject", "ServiceMonitor"];

/** One of them at most: KEDA refuses its ScaledObject while a HorizontalPodAutoscaler stands. */
export const scalerKinds: readonly string[] = ["HorizontalPodAutoscaler", "ScaledObject"];
