import type { ObservedDeployment } from "../facts/observed.ts";
import type { ConditionState } from "./conditions.ts";

const type = "TelemetryReady";

/** Only where telemetry is asked for. It never keeps anything from serving: who cannot be measured can still speak. */
export function telemetryFinding({ deployment, telemetry }: ObservedDeployment): ConditionState[] {
  if (deployment.spec.telemetry === undefined) return [];
  const { missingSecrets, monitorsMissing } = telemetry;
  const { namespace } = deployment.metadata;
  if (missingSecrets.length > 0) {
    const message = `The collector cannot send: there is no Secret ${missingSecrets.map((name) => `${namespace}/${name}`).join(", ")}. Create it, then restart the model pods that were started without it.`;
    return [{ type, status: "False", reason: "SecretMissing", message }];
  }
  if (monitorsMissing) {
    const message =
      "The cluster has no ServiceMonitor and PodMonitor: install the Prometheus operator, and they are made within a minute, or set telemetry.serviceMonitor.enabled to false.";
    return [{ type, status: "False", reason: "MonitorsNotInstalled", message }];
  }
  return [{ type, status: "True", reason: "Configured", message: "Metrics leave the pods as asked." }];
}

export const operatorConflict = "OperatorConflict";

/** Only while another operator serves this namespace too. */
export function operatorConflictFinding({ rival }: ObservedDeployment): ConditionState[] {
  if (rival === undefined) return [];
  const [first, second] = rival.names;
  const message = `Two operators serve this namespace, by their Leases ${first} and ${second}: the first goes on, the second waits. Give each namespaces of its own (watchNamespaces), or uninstall one.`;
  return [{ type: "SoleOperator", status: "False", reason: operatorConflict, message }];
}

/** Licenses expire to the second, but a difference below a minute is tolerated. */
const toleratedMs = 60_000;

/** Whether clocks differ by so much that dates are judged wrongly. */
export function isOff(aheadMs = 0): boolean {
  return Math.abs(aheadMs) > toleratedMs;
}

/** Only where the clocks differ. */
export function clockFinding({ clockAheadMs = 0 }: ObservedDeployment): ConditionState[] {
  if (!isOff(clockAheadMs)) return [];
  const where = clockAheadMs > 0 ? "ahead of" : "behind";
  const message = `The operator's clock is ${spoken(Math.abs(clockAheadMs))} ${where} the API server's: licenses are judged by it, and begin and end at the wrong time. Synchronise the clocks of the nodes (NTP).`;
  return [{ type: "ClockInStep", status: "False", reason: "ClockSkew", message }];
}

function spoken(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}
