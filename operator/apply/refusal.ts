import { ApiError } from "../cluster/api-error.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { ReconcileProblem } from "../facts/observed.ts";
import { admissionProblem, crdMismatch, sentence } from "../workload/external-problems.ts";

/** Explains why the API server rejected a child, and how to solve the problem. */

/**
 * Returns whether the API server rejected the object as invalid. An API server that does not know a field of
 * the object responds with status 500 (server-side apply, typed conversion).
 */
export function isRefused({ status, message }: ApiError): boolean {
  return status === 422 || (status === 500 && message.includes("failed to create typed patch object"));
}

/**
 * Returns whether the failure affects only this object. Every other failure (no response, overload, rejected
 * credentials) affects all requests.
 */
export function isAnswered(failure: unknown): boolean {
  return failure instanceof ApiError && ![401, 429, 502, 503, 504].includes(failure.status);
}

/**
 * Combines the problems of a reconcile. If a problem stalls the object, the result has the reason of that
 * problem. Otherwise the result has the reason of the first problem. Each message appears once.
 */
export function combineProblems(
  problems: readonly (ReconcileProblem | undefined)[],
): ReconcileProblem | undefined {
  const known = problems.filter((problem) => problem !== undefined);
  const worst = known.find(({ stalled }) => stalled) ?? known[0];
  if (worst === undefined) return undefined;
  const messages = new Set([worst, ...known].map(({ message }) => message));
  return { ...worst, message: [...messages].join(" ") };
}

/**
 * Removes the local address from connection errors. The port differs with each attempt, and a different
 * message would change the status after each attempt.
 */
function withoutLocalAddress(text: string): string {
  return text.replace(/(?:\[[0-9a-f:.%]+\]|\d+\.\d+\.\d+\.\d+):\d+->/gi, "");
}

/**
 * Returns whether the request failed because HTTPRoute of the Gateway API is not installed. Other optional
 * kinds are checked before a request.
 */
export function isMissingKind({ kind }: KubernetesObject, failure: unknown): boolean {
  return kind === "HTTPRoute" && failure instanceof ApiError && failure.status === 404;
}

/**
 * Returns the fields in the error that the CRD in the cluster does not have, such as `.status.license.id`.
 */
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
    return applyFailed(`${what} could not be written: ${sentence(String(failure))} The operator retries.`);
  }
  if (isMissingKind(child, failure)) {
    const message = `${what} cannot be created: this cluster does not have the API ${child.apiVersion}. Install the CRDs of the Gateway API, or use api.route.ingress.`;
    return { reason: "GatewayApiMissing", message, stalled: true };
  }
  const explained = admissionProblem(what, failure.message) ?? schemaProblem(what, child, failure);
  if (explained !== undefined) return explained;
  const unexplained = `${what} could not be written: ${sentence(failure.message)} The operator retries.`;
  return quotaProblem(what, failure) ?? applyFailed(unexplained);
}

function schemaProblem(
  what: string,
  { kind }: KubernetesObject,
  failure: ApiError,
): ReconcileProblem | undefined {
  if (!isRefused(failure)) return undefined;
  const fields = undeclaredFields(failure);
  if (kind.startsWith("Tts") && fields.length > 0)
    return crdMismatch(`${what} cannot be written: its CRD does not have ${fields.join(", ")}.`);
  const message = `The API server rejected ${what}: ${failure.message}. Change the field, or the podTemplate that sets it.`;
  return { reason: "Invalid", message, stalled: true };
}

function quotaProblem(what: string, { status, message: rejection }: ApiError): ReconcileProblem | undefined {
  if (status !== 403 || !/exceeded quota/i.test(rejection)) return undefined;
  const message = `${what} could not be written: ${sentence(rejection)} Raise the namespace's ResourceQuota, or reduce the requested resources. The operator retries.`;
  return { reason: "QuotaExceeded", message, stalled: false };
}

function applyFailed(message: string): ReconcileProblem {
  return { reason: "ApplyFailed", message, stalled: false };
}
