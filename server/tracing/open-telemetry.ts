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
import { type ErrorCode, Failure } from "../errors.ts";
import type { TracingLog, TracingSettings } from "./settings.ts";
import type { Attributes, IncomingHeaders, SpanKind as Kind, Span, Tracing } from "./span.ts";

/** Longest wait for the last spans when a tier stops; its streams have ended by then. */
const lastFlushMs = 3_000;
/** Spans that wait to be sent; more are dropped, so that an absent collector costs no more memory than these. */
const maxWaiting = 2_048;
const exportTimeoutMs = 5_000;

const propagator = new W3CTraceContextPropagator();

export async function openTelemetry(settings: TracingSettings, log: TracingLog): Promise<Tracing> {
  const exporter = telling(await createExporter(settings), log);
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
    stop: () => withinMs(provider.shutdown(), lastFlushMs),
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
      if (!span.isRecording()) return; // it ended before, or nobody will see it
      if (code) fail(span, code);
      span.end();
    },
  };
}

/** The code alone: a failure's sentence may name what a caller wrote. */
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

/** Tells the log once when the collector goes away, and once when it is back. */
function telling(exporter: SpanExporter, log: TracingLog): SpanExporter {
  let isAway = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS;
        if (failed && !isAway)
          log.warn(
            { reason: result.error?.message },
            "traces cannot be sent; they are dropped until the collector answers",
          );
        if (!failed && isAway) log.info({}, "traces are sent again");
        isAway = failed;
        // said above; the processor would only repeat it
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

/** Whatever is not done by then is given up. */
async function withinMs(work: Promise<void>, limitMs: number): Promise<void> {
  const { promise: tooLate, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  await Promise.race([work, tooLate]);
  clearTimeout(timer);
}
