import type { ObservedDeployment } from "../facts/observed.ts";
import type { ConditionState } from "./conditions.ts";

const type = "TelemetryReady";

/** The condition of telemetry, if the spec has it. Missing telemetry never stops the service. */
export function telemetryFinding({ deployment, telemetry }: ObservedDeployment): ConditionState[] {
  if (deployment.spec.telemetry === undefined) return [];
  const { missingSecrets, monitorsMissing } = telemetry;
  const { namespace } = deployment.metadata;
  if (missingSecrets.length > 0) {
    const message = `The collector cannot send, because these Secrets are missing: ${missingSecrets.map((name) => `${namespace}/${name}`).join(", ")}. Create them, then restart the model pods that started without them.`;
    return [{ type, status: "False", reason: "SecretMissing", message }];
  }
  if (monitorsMissing) {
    const message =
      "The cluster does not have the kinds ServiceMonitor and PodMonitor. Either install the Prometheus operator (the monitors are then created within a minute), or set telemetry.serviceMonitor.enabled to false.";
    return [{ type, status: "False", reason: "MonitorsNotInstalled", message }];
  }
  return [{ type, status: "True", reason: "Configured", message: "Telemetry is configured as specified." }];
}

export const operatorConflict = "OperatorConflict";

/** Present only while another operator serves this namespace too. */
export function operatorConflictFinding({ rival }: ObservedDeployment): ConditionState[] {
  if (rival === undefined) return [];
  const [first, second] = rival.names;
  const message = `Two operators serve this namespace. Their Leases are ${first} and ${second}. The first operator continues, and the second one waits. Give each operator its own namespaces (watchNamespaces), or uninstall one.`;
  return [{ type: "SoleOperator", status: "False", reason: operatorConflict, message }];
}

/** Licenses expire to the second, but a difference below a minute is tolerated. */
const toleratedMs = 60_000;

/** Whether the clocks differ so much that dates are evaluated wrongly. */
export function isOff(aheadMs = 0): boolean {
  return Math.abs(aheadMs) > toleratedMs;
}

/** Present only while the clocks differ. */
export function clockFinding({ clockAheadMs = 0 }: ObservedDeployment): ConditionState[] {
  if (!isOff(clockAheadMs)) return [];
  const where = clockAheadMs > 0 ? "ahead of" : "behind";
  const message = `The operator's clock is ${spoken(Math.abs(clockAheadMs))} ${where} the API server's clock. Licenses are evaluated by the operator's clock, and therefore begin and end at the wrong time. Synchronize the clocks of the nodes (NTP).`;
  return [{ type: "ClockInStep", status: "False", reason: "ClockSkew", message }];
}

function spoken(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}
