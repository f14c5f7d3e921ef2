import type { Clock } from "../../lib/clock.ts";
import { type CollectorLog, withoutSecrets } from "../telemetry/otlp.ts";
import type { TracingSettings } from "./settings.ts";
import { noTracing, type Tracing } from "./span.ts";

/** Starts OpenTelemetry traces. OpenTelemetry's packages are loaded only if traces are enabled. */
export async function startTracing(
  settings: TracingSettings | undefined,
  log: CollectorLog,
  clock: Clock,
): Promise<Tracing> {
  if (!settings) return noTracing;
  const { openTelemetry } = await import("./open-telemetry.ts");
  const tracing = await openTelemetry(settings, log, clock);
  log.info(
    { url: withoutSecrets(settings.url), protocol: settings.protocol },
    "the export of traces is enabled",
  );
  return tracing;
}
