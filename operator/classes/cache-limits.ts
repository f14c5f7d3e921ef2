import type { ReconcileProblem, TtsClass, TtsModelCache } from "../facts/observed.ts";
import { cacheViolations } from "./limits.ts";
import { selectClass } from "./select-class.ts";

/**
 * Returns why the class does not allow a TtsModelCache, if it does not. The class is selected as for a
 * TtsDeployment, so a user gains nothing by fetching the files with a TtsModelCache.
 */
export function cacheProblem(
  cache: TtsModelCache,
  classes: readonly TtsClass[],
  isNamespaced: boolean,
): ReconcileProblem | undefined {
  const { className } = cache.spec;
  if (isNamespaced && className === undefined) return undefined;
  const selected = selectClass({ spec: cache.spec }, isNamespaced ? [] : classes);
  if (selected === undefined) return undefined;
  const { name, found } = selected;
  if (found === undefined)
    return { reason: "ClassNotFound", message: missing(name, isNamespaced), stalled: true };
  const violations = cacheViolations(cache, found.spec.limits);
  if (violations.length === 0) return undefined;
  const listed = violations.map(({ field, problem }) => `${field} ${problem}.`).join(" ");
  const message = `TtsClass ${name} does not allow the spec: ${listed} No files are fetched, and files in the volume stay. Change these fields, or ask an administrator to change the class.`;
  return { reason: "ClassLimitExceeded", message, stalled: true };
}

function missing(name: string, isNamespaced: boolean): string {
  return isNamespaced
    ? `spec.className is ${name}, but this operator watches single namespaces, so it cannot read TtsClasses. Remove spec.className.`
    : `spec.className is ${name}, but this TtsClass does not exist. Create the TtsClass, or change spec.className.`;
}
