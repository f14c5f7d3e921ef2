export const otlpProtocols = ["http/protobuf", "http/json"] as const;

export const samplerNames = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

export interface TracingSettings {
  /** The URL to which the exporter posts spans, including the path. */
  readonly url: string;
  readonly protocol: (typeof otlpProtocols)[number];
  readonly serviceName: string;
  /** The resource attributes of every span, such as the namespace of the pod. */
  readonly resourceAttributes: Readonly<Record<string, string>>;
  readonly sampler: { readonly name: (typeof samplerNames)[number]; readonly ratio: number };
}
