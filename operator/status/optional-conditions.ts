import { wastesAccelerator } from "../desired/pods/accelerator-use.ts";
import type { ObservedDeployment } from "../facts/observed.ts";
import type { ConditionState } from "./conditions.ts";

const type = "TelemetryReady";

/**
 * Returns the condition TelemetryReady, if the spec contains telemetry. Missing telemetry does not affect the
 * condition Ready.
 */
export function telemetryFinding({ deployment, telemetry }: ObservedDeployment): ConditionState[] {
  if (deployment.spec.telemetry === undefined) return [];
  const { missingSecrets, monitorsMissing } = telemetry;
  const { namespace } = deployment.metadata;
  if (missingSecrets.length > 0) {
    const message = `The collector cannot export data, because these Secrets are missing: ${missingSecrets.map((name) => `${namespace}/${name}`).join(", ")}. Create the Secrets, and then restart the model pods that started without them.`;
    return [{ type, status: "False", reason: "SecretMissing", message }];
  }
  if (monitorsMissing) {
    const message =
      "The cluster does not have the kinds ServiceMonitor and PodMonitor. Install the Prometheus operator (the monitors are then created within a minute), or set telemetry.serviceMonitor.enabled to false.";
    return [{ type, status: "False", reason: "MonitorsNotInstalled", message }];
  }
  return [{ type, status: "True", reason: "Configured", message: "Telemetry is configured as specified." }];
}

export const operatorConflict = "OperatorConflict";

/**
 * Returns the condition SoleOperator. It is present only while another operator also reconciles the
 * TtsDeployment.
 */
export function operatorConflictFinding({ rival }: ObservedDeployment): ConditionState[] {
  if (rival === undefined) return [];
  const [first, second] = rival.names;
  const message = `Two operators reconcile this TtsDeployment. Their Leases are ${first} and ${second}. The first operator continues, and the second operator waits. Set different namespaces for each operator (watchNamespaces), or uninstall one of them.`;
  return [{ type: "SoleOperator", status: "False", reason: operatorConflict, message }];
}

/**
 * Returns the condition AcceleratorsUsed. It is present only while a pool reserves accelerators that its engine
 * does not use.
 */
export function acceleratorFinding({ deployment }: Pick<ObservedDeployment, "deployment">): ConditionState[] {
  const wasteful = deployment.spec.models.filter(wastesAccelerator).map(({ name }) => name);
  if (wasteful.length === 0) return [];
  const message = `These pools reserve an accelerator, and their engine runs on the processor: ${wasteful.join(", ")}. Set engine.type to vllm and an image that contains vLLM, set SVC_TTS_VOICES_PROVIDERS to cuda,cpu in env with an image that supports it, or remove accelerator.`;
  return [{ type: "AcceleratorsUsed", status: "False", reason: "AcceleratorUnused", message }];
}

/** The tolerated difference of the clocks. */
const toleratedMs = 60_000;

/** Returns whether the clocks differ by more than the tolerated difference. */
export function isOff(aheadMs = 0): boolean {
  return Math.abs(aheadMs) > toleratedMs;
}

/**
 * Returns the condition ClockInStep. It is present only while the clocks differ by more than the tolerated
 * difference.
 */
export function clockFinding({ clockAheadMs = 0 }: ObservedDeployment): ConditionState[] {
  if (!isOff(clockAheadMs)) return [];
  const [where, when] = clockAheadMs > 0 ? ["ahead of", "early"] : ["behind", "late"];
  const difference = durationText(Math.abs(clockAheadMs));
  const message = `The operator's clock is ${difference} ${where} the API server's clock. The operator evaluates licenses with its own clock, so licenses begin and end ${difference} ${when}. Synchronize the clocks of the nodes (NTP).`;
  return [{ type: "ClockInStep", status: "False", reason: "ClockSkew", message }];
}

function durationText(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes === 1) return "1 minute";
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}
