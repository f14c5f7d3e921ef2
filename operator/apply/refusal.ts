import { ApiError } from "../cluster/api-error.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { ReconcileProblem } from "../facts/observed.ts";
import { admissionProblem, crdMismatch, sentence } from "../workload/external-problems.ts";

/** Explains why the API server rejected a child, and what to do about it. */

/** The object itself is invalid. A field that this version of Kubernetes does not have is reported as 500 (server-side apply, typed conversion). */
export function isRefused({ status, message }: ApiError): boolean {
  return status === 422 || (status === 500 && message.includes("failed to create typed patch object"));
}

/** The API server answered for this object alone; anything else (no answer, overload, rejected credentials) concerns every call. */
export function isAnswered(failure: unknown): boolean {
  return failure instanceof ApiError && ![401, 429, 502, 503, 504].includes(failure.status);
}

/** All problems of a pass as one: the reason of the gravest, every message once. */
export function combineProblems(
  problems: readonly (ReconcileProblem | undefined)[],
): ReconcileProblem | undefined {
  const known = problems.filter((problem) => problem !== undefined);
  const gravest = known.find(({ stalled }) => stalled) ?? known[0];
  if (gravest === undefined) return undefined;
  const messages = new Set([gravest, ...known].map(({ message }) => message));
  return { ...gravest, message: [...messages].join(" ") };
}

/**
 * Errors of connections name the local port, which is another one each time: a message that differs with each attempt would make each
 * attempt a change of the status.
 */
function withoutLocalAddress(text: string): string {
  return text.replace(/(?:\[[0-9a-f:.%]+\]|\d+\.\d+\.\d+\.\d+):\d+->/gi, "");
}

/** Only a Gateway's kinds may be missing: an operator whose own are could do nothing. */
export function isMissingKind({ kind }: KubernetesObject, failure: unknown): boolean {
  return kind === "HTTPRoute" && failure instanceof ApiError && failure.status === 404;
}

/** Fields that the cluster's schema of the kind does not have, as `.status.license.id`. */
export function undeclaredFields(error: unknown): string[] {
  if (!(error instanceof ApiError)) return [];
  if (!error.message.includes("field not declared in schema")) return [];
  const named = [...error.message.matchAll(/(\.[A-Za-z][^\s:]*): field not declared in schema/g)];
  return [...new Set(named.map(([, field = ""]) => field))];
}

export function problemOf(child: KubernetesObject, failure: unknown): ReconcileProblem {
  const problem = problemWith(child, failure);
  return { ...problem, message: withoutLocalAddress(problem.message) };
}

function problemWith(child: KubernetesObject, failure: unknown): ReconcileProblem {
  const what = `${child.kind} ${child.metadata.name}`;
  if (!(failure instanceof ApiError)) {
    return applyFailed(`${what} could not be written: ${String(failure)}.`);
  }
  if (isMissingKind(child, failure)) {
    const message = `${what} cannot be made: this cluster has no ${child.apiVersion}. Install the CRDs of the Gateway API, or use api.route.ingress.`;
    return { reason: "GatewayApiMissing", message, stalled: true };
  }
  const said = admissionProblem(what, failure.message) ?? schemaProblem(what, child, failure);
  return (
    said ?? quotaProblem(what, failure) ?? applyFailed(`${what} could not be written: ${failure.message}`)
  );
}

function schemaProblem(
  what: string,
  { kind }: KubernetesObject,
  failure: ApiError,
): ReconcileProblem | undefined {
  if (!isRefused(failure)) return undefined;
  const fields = undeclaredFields(failure);
  if (kind.startsWith("Tts") && fields.length > 0)
    return crdMismatch(`${what} cannot be written: its CRD has no ${fields.join(", ")}.`);
  const message = `The API server rejected ${what}: ${failure.message}. Change the field, or what podTemplate makes of it.`;
  return { reason: "Invalid", message, stalled: true };
}

function quotaProblem(what: string, { status, message: said }: ApiError): ReconcileProblem | undefined {
  if (status !== 403 || !/exceeded quota/i.test(said)) return undefined;
  const message = `${what} could not be written: ${sentence(said)} Raise the namespace's ResourceQuota or ask for less; it is tried again.`;
  return { reason: "QuotaExceeded", message, stalled: false };
}

function applyFailed(message: string): ReconcileProblem {
  return { reason: "ApplyFailed", message, stalled: false };
}
