import type { Clock } from "../../lib/clock.ts";
import { type CollectorLog, withoutSecrets } from "./otlp.ts";
import type { TelemetrySettings } from "./settings.ts";
import { noTelemetry, type Telemetry } from "./telemetry.ts";

/**
 * Starts OpenTelemetry metrics. OpenTelemetry's packages are loaded, and GPUs are watched, only if metrics
 * are enabled.
 */
export async function startTelemetry(
  settings: TelemetrySettings | undefined,
  log: CollectorLog,
  clock: Clock,
): Promise<Telemetry> {
  if (!settings) return noTelemetry;
  const { openTelemetryMetrics } = await import("./open-telemetry.ts");
  const telemetry = await openTelemetryMetrics(settings, log, clock);
  log.info(
    { url: withoutSecrets(settings.url), protocol: settings.protocol },
    "the export of metrics is enabled",
  );
  return telemetry;
}
