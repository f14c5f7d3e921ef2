import type { ReconcileProblem, TtsModelCache } from "../facts/observed.ts";
import { cacheViolations } from "./limits.ts";
import { type ClassesOfCluster, classOfSettings } from "./resolve-class.ts";
import { type SelectedClass, selectClass } from "./select-class.ts";

/** The classes of the cluster. `classes` is undefined if the operator cannot read them. */
export type CacheClasses = Pick<ClassesOfCluster, "classes" | "isNamespaced">;

/**
 * Returns the problem of a TtsModelCache that its class refuses. The class is selected as for a
 * TtsDeployment. Therefore a user cannot avoid the limits by fetching the files with a TtsModelCache.
 */
export function cacheProblem(
  cache: TtsModelCache,
  { classes, isNamespaced }: CacheClasses,
): ReconcileProblem | undefined {
  if (classes === undefined) return { reason: "ClassesUnreadable", message: unreadable, stalled: true };
  const selected = classOfCache(cache, { classes, isNamespaced });
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

/**
 * Returns the class of a TtsModelCache. A TtsModelCache does not record its class, so no class applies after the
 * default class is deleted.
 */
export function classOfCache(
  { spec }: TtsModelCache,
  { classes = [], isNamespaced }: CacheClasses,
): SelectedClass | undefined {
  if (isNamespaced && spec.className === undefined) return classOfSettings(classes);
  return selectClass({ spec }, classes);
}

const unreadable =
  "The operator cannot read TtsClasses, so it does not know which class applies, and fetches no files. Allow the operator to get, list and watch ttsclasses.";

function missing(name: string, isNamespaced: boolean): string {
  return isNamespaced
    ? `spec.className is ${name}, but this operator watches single namespaces, so it cannot read TtsClasses. Remove spec.className.`
    : `spec.className is ${name}, but this TtsClass does not exist. Create the TtsClass, or change spec.className.`;
}
