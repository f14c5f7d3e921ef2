import { otelEnv as names } from "../../../config/contract/names.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import { otlpProtocols, samplerNames, type TracingSettings } from "../../tracing/settings.ts";
import { type Environment, readers } from "./environment.ts";
import { readAttributes } from "./resource-attributes.ts";

const defaultEndpoint = "http://localhost:4318";
/** The path that OpenTelemetry appends to the common endpoint for traces. */
const tracesPath = "v1/traces";

/**
 * Reads OpenTelemetry's standard variables for traces. Traces are on if `OTEL_TRACES_EXPORTER` is `otlp` and
 * `OTEL_SDK_DISABLED` is not `true`. If traces are off, the result is undefined.
 * @throws UsageError with the variable, its value and the allowed values.
 */
export function readTracing(environment: Environment, tier: string): TracingSettings | undefined {
  const { text, oneOf } = readers(environment);
  const exporter = oneOf(names.tracesExporter, ["none", "otlp"], "none");
  if (exporter === "none" || text(names.sdkDisabled)?.toLowerCase() === "true") return undefined;
  const protocolName = text(names.tracesProtocol) === undefined ? names.protocol : names.tracesProtocol;
  const resourceAttributes = readAttributes(text(names.resourceAttributes) ?? "");
  return {
    url: readUrl(environment),
    protocol: oneOf(protocolName, otlpProtocols, "http/protobuf"),
    serviceName: text(names.serviceName) ?? resourceAttributes["service.name"] ?? `svc-tts-${tier}`,
    resourceAttributes,
    sampler: {
      name: oneOf(names.tracesSampler, samplerNames, "parentbased_always_on"),
      ratio: readRatio(text(names.tracesSamplerArg)),
    },
  };
}

/**
 * Returns the endpoint of traces unchanged. If that endpoint is not set, the function appends the path of
 * traces to the common endpoint.
 */
function readUrl(environment: Environment): string {
  const { text } = readers(environment);
  const own = text(names.tracesEndpoint);
  if (own !== undefined) return httpUrl(names.tracesEndpoint, own).href;
  const base = httpUrl(names.endpoint, text(names.endpoint) ?? defaultEndpoint);
  base.pathname = `${base.pathname.replace(/\/$/, "")}/${tracesPath}`;
  return base.href;
}

/** Parses a URL. The value may contain a password, so the error message does not quote the value. */
function httpUrl(name: string, value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new UsageError(`${name} must be a URL such as http://collector:4318 (OTLP over HTTP).`);
}

function readRatio(given: string | undefined): number {
  const ratio = Number(given ?? 1);
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new UsageError(
    `${names.tracesSamplerArg} must be a number from 0 to 1; it is ${JSON.stringify(given)}.`,
  );
}
