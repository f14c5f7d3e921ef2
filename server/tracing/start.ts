import type { TracingLog, TracingSettings } from "./settings.ts";
import { noTracing, type Tracing } from "./span.ts";

/** Traces by OpenTelemetry, whose packages are loaded only where it is asked for. */
export async function startTracing(settings: TracingSettings | undefined, log: TracingLog): Promise<Tracing> {
  if (!settings) return noTracing;
  const { openTelemetry } = await import("./open-telemetry.ts");
  const tracing = await openTelemetry(settings, log);
  log.info({ url: withoutSecrets(settings.url), protocol: settings.protocol }, "traces are on");
  return tracing;
}

function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
