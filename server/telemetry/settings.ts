/** The first one is the default, and recommended by specification 6.4. */
export const collectorProtocols = ["grpc", "http/protobuf", "http/json"] as const;

/** The collector of the metrics of arcana, and its resource attributes. */
export interface TelemetrySettings {
  readonly protocol: (typeof collectorProtocols)[number];
  /** Includes the path for HTTP; gRPC has none. */
  readonly url: string;
  /** No attribute is added to them (specification 6.4). */
  readonly resourceAttributes: Readonly<Record<string, string>>;
  /** Time between two exports. */
  readonly intervalMs: number;
}
