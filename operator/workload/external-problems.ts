import type { ReconcileProblem } from "../facts/observed.ts";

/** Explains problems that other products cause: admission control, and CRDs of another version. */

/**
 * Explains a rejection by an admission webhook or policy, or by a webhook that does not respond. Returns
 * undefined for other rejections.
 */
export function admissionProblem(what: string, rejection: string): ReconcileProblem | undefined {
  const [, webhook, policy] =
    /admission webhook "([^"]+)" denied|(ValidatingAdmissionPolicy '[^']+')/.exec(rejection) ?? [];
  const controller = webhook === undefined ? policy : `the admission webhook ${webhook}`;
  if (controller !== undefined) {
    const message = `${what} was rejected by ${controller}, which is not part of svc-tts: ${sentence(rejection)} Change the spec so that the object meets the requirements (podTemplate changes the pods), or ask the administrator of the cluster to exempt this namespace.`;
    return { reason: "AdmissionDenied", message, stalled: true };
  }
  const [, unreachable] = /failed (?:calling|to call) webhook "([^"]+)"/.exec(rejection) ?? [];
  if (unreachable === undefined) return undefined;
  const message = `${what} waits for the admission webhook ${unreachable}, which is not part of svc-tts and does not respond: ${sentence(rejection)} Ask the administrator of the cluster; the operator retries.`;
  return { reason: "WebhookUnreachable", message, stalled: false };
}

/** Explains that the CRDs and this operator have different versions. */
export function crdMismatch(what: string): ReconcileProblem {
  const message = `${what} The CRDs in this cluster do not match the operator's version. Install the CRDs of that version (kubectl apply --server-side -f crds/, or the chart with crds.enabled).`;
  return { reason: "CrdMismatch", message, stalled: true };
}

/** Returns the text with exactly one full stop at its end. */
export function sentence(text: string): string {
  return `${text.replace(/[.\s]+$/, "")}.`;
}
