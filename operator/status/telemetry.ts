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
