import { api } from "../../config/contract/names.ts";
import type { ClassAllocations } from "../classes/class-allocations.ts";
import { type ResolvedDeployment, resolveClass, storedShare } from "../classes/resolve-class.ts";
import { type ClusterCache, everyClass } from "../cluster/cache.ts";
import { objectKey } from "../facts/object-key.ts";
import type { TtsClass, TtsDeployment } from "../facts/observed.ts";
import { needsLicense, type Settings } from "../facts/settings.ts";
import { type RolledBackDeployment, withKeptSettings } from "./revision-history.ts";

/** The dependencies of {@link applyClassOf}. */
export interface ClassesContext {
  readonly view: ClusterCache;
  readonly classes: ClassAllocations;
  readonly settings: Pick<Settings, "class">;
}

/** The name of the class in the settings of an operator, which appears in messages. */
const nameOfSettings = "operator-settings";

/**
 * Applies the class of a TtsDeployment, and records its share of the class. The function must not await, so
 * that a concurrent reconcile cannot allocate the same capacity.
 */
export function applyClassOf(
  { view, classes, settings }: ClassesContext,
  { deployment, kept }: RolledBackDeployment,
): ResolvedDeployment {
  const key = objectKey(deployment);
  const stored = (other: string) => {
    const found = view.get("TtsDeployment", other);
    return found && storedShare(found as TtsDeployment);
  };
  const resolved = resolveClass(deployment, {
    classes: classesOf(view, settings),
    isNamespaced: view.isNamespaced,
    own: classes.shareOf(key),
    adjust: (spec) => withKeptSettings(spec, kept),
    elsewhere: (className) => classes.useOf(className, otherKeys(view, deployment), stored),
  });
  classes.take(key, resolved.share);
  return resolved;
}

/**
 * Returns the context with the license requirement of the class that accepted the spec. The share names this class
 * also if the status cannot hold the spec. If the class cannot be read, the requirement does not change. Without a
 * requirement, pods get no license keys.
 */
export function withLicenseOf<C extends ClassesContext & { readonly settings: Settings }>(
  context: C,
  resolved: ResolvedDeployment | undefined,
): C {
  if (resolved === undefined) return context;
  const { deployment, share } = resolved;
  const { view, settings } = context;
  const className = share?.className;
  const classes = classesOf(view, settings);
  const found = classes?.find(({ metadata }) => metadata.name === className);
  const state = deployment.status?.license.state ?? "not_required";
  const isUnknown = classes === undefined || (className !== undefined && found === undefined);
  const classRequiresLicense = isUnknown
    ? state !== "not_required"
    : (found?.spec.license?.required ?? false);
  const own = { ...settings, classRequiresLicense };
  return { ...context, settings: needsLicense(own) ? own : { ...own, licenseKeys: { keys: [] } } };
}

/** Returns the classes that apply. The result is undefined if the operator cannot read them. */
export function classesOf(view: ClusterCache, settings: Pick<Settings, "class">): TtsClass[] | undefined {
  if (!view.isNamespaced)
    return view.knowsAll("TtsClass") ? (view.group("TtsClass", everyClass) as TtsClass[]) : undefined;
  if (settings.class === undefined) return [];
  const { apiVersion } = api;
  return [{ apiVersion, kind: "TtsClass", metadata: { name: nameOfSettings }, spec: settings.class }];
}

/** Returns the keys of the other TtsDeployments in the namespace. */
function otherKeys(view: ClusterCache, deployment: TtsDeployment): string[] {
  const ids = view.ids("TtsDeployment", deployment.metadata.namespace);
  return ids.map((id) => id.slice("TtsDeployment/".length)).filter((key) => key !== objectKey(deployment));
}
