import { ExportResultCode } from "@opentelemetry/core";
import type { OTLPMetricExporterBase } from "@opentelemetry/exporter-metrics-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import type { Clock } from "../../lib/clock.ts";
import { GpuLoad } from "./gpu-load.ts";
import { type CollectorLog, createExportLog, exportTimeoutMs, lastFlushMs, withinMs } from "./otlp.ts";
import type { TelemetrySettings } from "./settings.ts";
import type { Telemetry } from "./telemetry.ts";

/**
 * The bounds in milliseconds. The bounds are dense between 100 and 500, because users notice delays in this
 * range.
 */
const latencyBounds = [
  5, 10, 25, 50, 75, 100, 125, 150, 175, 200, 225, 250, 275, 300, 325, 350, 375, 400, 425, 450, 475, 500, 600,
  700, 800, 900, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000, 30_000,
];
/** The bounds in seconds. Texts range from a single word to a chapter. */
const durationBounds = [0.25, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600, 1_800];

interface Instrument {
  readonly name: string;
  readonly kind: "counter" | "up-down counter" | "histogram" | "gauge";
  readonly unit: string;
  readonly description: string;
}

/** The instruments, by the names of specification 6.3. */
export const engineInstruments = {
  gpuLoad: {
    name: "svc.engine.gpu_load",
    kind: "gauge",
    unit: "%",
    description: "Mean load of the GPUs of the container; absent without a GPU",
  },
  invocations: {
    name: "svc.engine.invocation_request",
    kind: "counter",
    unit: "{request}",
    description: "Invocations that the container received",
  },
  pipelines: {
    name: "svc.engine.concurrent_pipeline",
    kind: "up-down counter",
    unit: "{pipeline}",
    description: "Streams in progress",
  },
  latency: {
    name: "svc.engine.initial_latency",
    kind: "histogram",
    unit: "ms",
    description: "Time from an invocation to the first audio of its stream, including the time in the queue",
  },
  duration: {
    name: "svc.engine.generated_audio_duration",
    kind: "histogram",
    unit: "s",
    description: "Duration of the audio of each stream, including interrupted streams",
  },
} as const satisfies Record<string, Instrument>;

/** Creates the five metrics of specification 6.3. The specification does not define their types and units. */
export async function openTelemetryMetrics(
  settings: TelemetrySettings,
  log: CollectorLog,
  clock: Clock,
): Promise<Telemetry> {
  const provider = new MeterProvider({
    // If a resource is given, the SDK does not add its default attributes.
    resource: resourceFromAttributes(settings.resourceAttributes),
    readers: [
      new PeriodicExportingMetricReader({
        exporter: withExportLog(await createExporter(settings), log),
        exportIntervalMillis: settings.intervalMs,
        exportTimeoutMillis: timeoutOf(settings),
      }),
    ],
  });
  const gpus = new GpuLoad(log, clock);
  const { invocations, pipelines, latency, duration } = createInstruments(provider, gpus);
  // The counter exists from the start, so that a rate includes the first request.
  invocations.add(0);
  pipelines.add(0);
  return {
    invoked: () => invocations.add(1),
    began: () => pipelines.add(1),
    ended: () => pipelines.add(-1),
    firstAudio: (latencyMs) => latency.record(latencyMs),
    generated: (audioSeconds) => duration.record(audioSeconds),
    stop: async () => {
      await withinMs(provider.shutdown(), lastFlushMs, clock);
      gpus.close();
    },
  };
}

function createInstruments(provider: MeterProvider, gpus: GpuLoad) {
  const meter = provider.getMeter("svc-tts");
  const { gpuLoad, invocations, pipelines, latency, duration } = engineInstruments;
  meter.createObservableGauge(gpuLoad.name, gpuLoad).addCallback((result) => {
    const percent = gpus.percent();
    if (percent !== undefined) result.observe(percent);
  });
  return {
    invocations: meter.createCounter(invocations.name, invocations),
    pipelines: meter.createUpDownCounter(pipelines.name, pipelines),
    latency: meter.createHistogram(latency.name, {
      ...latency,
      advice: { explicitBucketBoundaries: latencyBounds },
    }),
    duration: meter.createHistogram(duration.name, {
      ...duration,
      advice: { explicitBucketBoundaries: durationBounds },
    }),
  };
}

/** Limits the timeout to the interval, so that two exports never overlap. */
function timeoutOf({ intervalMs }: TelemetrySettings): number {
  return Math.min(exportTimeoutMs, intervalMs);
}

/** Loads only the package of the selected protocol. */
async function createExporter(settings: TelemetrySettings): Promise<OTLPMetricExporterBase> {
  const { url, protocol } = settings;
  const timeoutMillis = timeoutOf(settings);
  const options = { url, timeoutMillis };
  switch (protocol) {
    case "grpc":
      return new (await import("@opentelemetry/exporter-metrics-otlp-grpc")).OTLPMetricExporter(options);
    case "http/protobuf":
      return new (await import("@opentelemetry/exporter-metrics-otlp-proto")).OTLPMetricExporter(options);
    case "http/json":
      return new (await import("@opentelemetry/exporter-metrics-otlp-http")).OTLPMetricExporter(options);
  }
}

/** Logs failures of the exporter, and hides them from the reader, which would log them a second time. */
function withExportLog(exporter: OTLPMetricExporterBase, log: CollectorLog): PushMetricExporter {
  const logResult = createExportLog("metrics", log);
  return {
    export: (metrics, done) =>
      exporter.export(metrics, ({ code, error }) => {
        logResult({ failed: code !== ExportResultCode.SUCCESS, error });
        done({ code: ExportResultCode.SUCCESS });
      }),
    selectAggregationTemporality: (type) => exporter.selectAggregationTemporality(type),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}
