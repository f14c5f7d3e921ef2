import {
  type Context,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { ExportResultCode, W3CTraceContextPropagator } from "@opentelemetry/core";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Clock } from "../../lib/clock.ts";
import { type ErrorCode, Failure } from "../contract/errors.ts";
import {
  type CollectorLog,
  createExportLog,
  exportTimeoutMs,
  lastFlushMs,
  withinMs,
} from "../telemetry/otlp.ts";
import type { TracingSettings } from "./settings.ts";
import type { Attributes, IncomingHeaders, SpanKind as Kind, Span, Tracing } from "./span.ts";

/**
 * The highest number of spans that wait for export. Further spans are dropped, so that the memory stays
 * bounded while the collector is unavailable.
 */
const maxWaiting = 2_048;

const propagator = new W3CTraceContextPropagator();

export async function openTelemetry(
  settings: TracingSettings,
  log: CollectorLog,
  clock: Clock,
): Promise<Tracing> {
  const exporter = withExportLog(await createExporter(settings), log);
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({ ...settings.resourceAttributes, "service.name": settings.serviceName }),
    ),
    sampler: createSampler(settings.sampler),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: maxWaiting,
        scheduledDelayMillis: 1_000,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  const tracer = provider.getTracer("svc-tts");
  const start = (name: string, kind: SpanKind, parent: Context, attributes: Attributes = {}): Span => {
    const context = trace.setSpan(parent, tracer.startSpan(name, { kind, attributes }, parent));
    return spanIn(context, start);
  };
  return {
    begin: (name, headers, attributes) => start(name, SpanKind.SERVER, contextOf(headers), attributes),
    stop: () => withinMs(provider.shutdown(), lastFlushMs, clock),
  };
}

type Start = (name: string, kind: SpanKind, parent: Context, attributes?: Attributes) => Span;

const kinds: Readonly<Record<Kind, SpanKind>> = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT };

function spanIn(context: Context, start: Start): Span {
  const span = trace.getSpan(context) as OtelSpan;
  return {
    isRecording: span.isRecording(),
    traceId: span.spanContext().traceId,
    get headers() {
      const headers: Record<string, string> = {};
      propagator.inject(context, headers, {
        set: (carrier, name, value) => {
          carrier[name] = value;
        },
      });
      return headers;
    },
    child: (name, attributes, kind = "internal") => start(name, kinds[kind], context, attributes),
    set: (attributes) => void span.setAttributes(attributes),
    end: (code) => {
      if (!span.isRecording()) return; // The span has ended, or is not sampled.
      if (code) fail(span, code);
      span.end();
    },
  };
}

/** Records only the error code, because the message of a failure may quote the client's input. */
function fail(span: OtelSpan, code: ErrorCode): void {
  span.setAttribute("error.type", code);
  if (new Failure(code, "").status >= 500) span.setStatus({ code: SpanStatusCode.ERROR, message: code });
}

function contextOf(headers: IncomingHeaders): Context {
  return propagator.extract(ROOT_CONTEXT, headers, {
    get: (carrier, name) => carrier[name],
    keys: (carrier) => Object.keys(carrier),
  });
}

async function createExporter({ url, protocol }: TracingSettings): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === "http/json"
      ? await import("@opentelemetry/exporter-trace-otlp-http")
      : await import("@opentelemetry/exporter-trace-otlp-proto");
  return new OTLPTraceExporter({ url, timeoutMillis: exportTimeoutMs });
}

/** Logs failures of the exporter, and hides them from the processor, which would log them a second time. */
function withExportLog(exporter: SpanExporter, log: CollectorLog): SpanExporter {
  const logResult = createExportLog("traces", log);
  return {
    export: (spans, done) =>
      exporter.export(spans, ({ code, error }) => {
        logResult({ failed: code !== ExportResultCode.SUCCESS, error });
        done({ code: ExportResultCode.SUCCESS });
      }),
    shutdown: () => exporter.shutdown(),
  };
}

function createSampler({ name, ratio }: TracingSettings["sampler"]): Sampler {
  switch (name) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return new TraceIdRatioBasedSampler(ratio);
    case "parentbased_always_on":
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}
