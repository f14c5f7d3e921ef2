import { telemetryEnv as names, otelEnv, ports } from "../../../config/contract/names.ts";
import { collectorPort } from "../../../config/contract/otlp.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import { collectorProtocols, type TelemetrySettings } from "../../telemetry/settings.ts";
import { type Environment, readers } from "./environment.ts";
import { readAttributes } from "./resource-attributes.ts";

const defaultIntervalMs = 15_000;
/** The path that OpenTelemetry appends to a collector's HTTP URL for metrics. */
const metricsPath = "/v1/metrics";

/**
 * Reads the destination of arcana's metrics (specification 6.4). The result is undefined if
 * `OTEL_COLLECTOR_ENDPOINT` is not set, or `OTEL_SDK_DISABLED` is `true`.
 * @throws UsageError with the variable and the allowed values.
 */
export function readTelemetry(environment: Environment): TelemetrySettings | undefined {
  const { text, integer, oneOf } = readers(environment);
  const endpoint = text(names.endpoint);
  const protocol = oneOf(names.protocol, collectorProtocols, "grpc");
  if (endpoint === undefined || text(otelEnv.sdkDisabled)?.toLowerCase() === "true") return undefined;
  const serviceName = text(otelEnv.serviceName);
  return {
    protocol,
    url: collectorUrl(endpoint, protocol),
    resourceAttributes: {
      ...readAttributes(text(otelEnv.resourceAttributes) ?? ""),
      ...(serviceName !== undefined && { "service.name": serviceName }),
    },
    intervalMs: integer(names.intervalMs, defaultIntervalMs, 100, 3_600_000),
  };
}

/**
 * Returns the URL of the collector. An address without a scheme uses plain HTTP. The default port is the port
 * of OTLP, or 443 with TLS. With HTTP, the function appends the path of metrics if the path is missing. With
 * gRPC, the URL has no path. The address may contain a password, so the error message does not quote the
 * address.
 */
function collectorUrl(given: string, protocol: TelemetrySettings["protocol"]): string {
  const text = given.includes("://") ? given : `http://${given}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(
      `${names.endpoint} must be the address of an OpenTelemetry collector, such as http://collector:${ports.otlpGrpc}.`,
    );
  }
  url.port = String(collectorPort(text, protocol));
  const path = url.pathname.replace(/\/+$/, "");
  if (protocol === "grpc") url.pathname = "";
  else url.pathname = path.endsWith(metricsPath) ? path : path + metricsPath;
  return url.href;
}
