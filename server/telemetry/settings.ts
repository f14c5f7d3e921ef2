/** The first is what specification 6.4 recommends, and the default. */
export const collectorProtocols = ["grpc", "http/protobuf", "http/json"] as const;

/** The collector of the metrics of arcana, and its resource attributes. */
export interface TelemetrySettings {
  readonly protocol: (typeof collectorProtocols)[number];
  /** Path included where it is HTTP; gRPC has none. */
  readonly url: string;
  /** Nothing is added to them (specification 6.4). */
  readonly resourceAttributes: Readonly<Record<string, string>>;
  /** Between two sends. */
  readonly intervalMs: number;
}
