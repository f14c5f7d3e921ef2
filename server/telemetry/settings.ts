/** The protocols of the collector. The first protocol is the default, which specification 6.4 recommends. */
export const collectorProtocols = ["grpc", "http/protobuf", "http/json"] as const;

/** The collector for the metrics of arcana, and the resource attributes of the metrics. */
export interface TelemetrySettings {
  readonly protocol: (typeof collectorProtocols)[number];
  /** The URL includes a path with HTTP, but not with gRPC. */
  readonly url: string;
  /** The server adds no further attributes (specification 6.4). */
  readonly resourceAttributes: Readonly<Record<string, string>>;
  /** The time between two exports. */
  readonly intervalMs: number;
}
