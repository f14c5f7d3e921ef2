import type { ReconcileProblem } from "../facts/observed.ts";

/** Explains rejections by admission control and other products. */

/** Explains a rejection by the admission control of another product. The message repeats its explanation. */
export function admissionProblem(what: string, said: string): ReconcileProblem | undefined {
  const [, webhook, policy] =
    /admission webhook "([^"]+)" denied|(ValidatingAdmissionPolicy '[^']+')/.exec(said) ?? [];
  const controller = webhook === undefined ? policy : `the admission webhook ${webhook}`;
  if (controller !== undefined) {
    const message = `${what} was rejected by ${controller}, which is not part of svc-tts: ${sentence(said)} Meet its requirements (podTemplate changes the pods), or ask its administrator to exempt this namespace.`;
    return { reason: "AdmissionDenied", message, stalled: true };
  }
  const [, unreachable] = /failed (?:calling|to call) webhook "([^"]+)"/.exec(said) ?? [];
  if (unreachable === undefined) return undefined;
  const message = `${what} waits for the admission webhook ${unreachable}, which is not part of svc-tts and does not respond: ${sentence(said)} Ask its administrator; the operator retries.`;
  return { reason: "WebhookUnreachable", message, stalled: false };
}

/** Explains that the CRDs have another version than this operator. */
export function crdMismatch(what: string): ReconcileProblem {
  const message = `${what} The CRDs in this cluster do not match the operator's version. Install the CRDs of that version (kubectl apply --server-side -f crds/, or the chart with crds.enabled).`;
  return { reason: "CrdMismatch", message, stalled: true };
}

/** Returns the text with exactly one full stop at its end. */
export function sentence(text: string): string {
  return `${text.replace(/[.\s]+$/, "")}.`;
}
