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
  /** The URL to which spans are posted, with its path. */
  readonly url: string;
  readonly protocol: (typeof otlpProtocols)[number];
  readonly serviceName: string;
  /** Attributes of every span, such as its location. */
  readonly resourceAttributes: Readonly<Record<string, string>>;
  readonly sampler: { readonly name: (typeof samplerNames)[number]; readonly ratio: number };
}
