import { telemetryEnv as names, otelEnv, ports } from "../../../config/contract/names.ts";
import { collectorPort } from "../../../config/contract/otlp.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import { collectorProtocols, type TelemetrySettings } from "../../telemetry/settings.ts";
import { type Environment, readers } from "./environment.ts";
import { readAttributes } from "./resource-attributes.ts";

const defaultIntervalMs = 15_000;
/** What OpenTelemetry appends to a collector's address for metrics, where it is HTTP. */
const metricsPath = "/v1/metrics";

/**
 * Where arcana sends its metrics (specification 6.4); undefined where `OTEL_COLLECTOR_ENDPOINT` names no collector.
 * @throws UsageError naming the variable and what is allowed.
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
 * A host and its port are enough: then it is without TLS. A port that is not named is OTLP's own, with TLS 443. The path of metrics is
 * appended where it is HTTP and not there yet; gRPC has no path. The address may hold a password, so it is not repeated in the error.
 */
function collectorUrl(given: string, protocol: TelemetrySettings["protocol"]): string {
  const text = given.includes("://") ? given : `http://${given}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(
      `${names.endpoint} must be the address of an OpenTelemetry collector, as http://collector:${ports.otlpGrpc}.`,
    );
  }
  url.port = String(collectorPort(text, protocol));
  const path = url.pathname.replace(/\/+$/, "");
  if (protocol === "grpc") url.pathname = "";
  else url.pathname = path.endsWith(metricsPath) ? path : path + metricsPath;
  return url.href;
}
