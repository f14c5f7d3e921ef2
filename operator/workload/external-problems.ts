import type { ReconcileProblem } from "../facts/observed.ts";

/** Explains rejections by admission control and other products. */

/** Another product's admission control: what it says is repeated, since it alone knows why. */
export function admissionProblem(what: string, said: string): ReconcileProblem | undefined {
  const [, webhook, policy] =
    /admission webhook "([^"]+)" denied|(ValidatingAdmissionPolicy '[^']+')/.exec(said) ?? [];
  const who = webhook === undefined ? policy : `the admission webhook ${webhook}`;
  if (who !== undefined) {
    const message = `${what} was refused by ${who}, which is not part of svc-tts: ${sentence(said)} Do as it asks (podTemplate changes pods), or ask its administrator to exempt this namespace.`;
    return { reason: "AdmissionDenied", message, stalled: true };
  }
  const [, away] = /failed (?:calling|to call) webhook "([^"]+)"/.exec(said) ?? [];
  if (away === undefined) return undefined;
  const message = `${what} waits for the admission webhook ${away}, which is not part of svc-tts and does not answer: ${sentence(said)} Ask its administrator; the operator retries.`;
  return { reason: "WebhookUnreachable", message, stalled: false };
}

/** The cluster's CRDs are of an earlier version than this operator. */
export function crdMismatch(what: string): ReconcileProblem {
  const message = `${what} The CRDs in this cluster are not those of this operator's version: install its own (kubectl apply --server-side -f crds/, or the chart with crds.enabled).`;
  return { reason: "CrdMismatch", message, stalled: true };
}

/** With one full stop at its end. */
export function sentence(text: string): string {
  return `${text.replace(/[.\s]+$/, "")}.`;
}
