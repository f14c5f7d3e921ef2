import { defaultClassAnnotation } from "../../config/contract/names.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { TtsClass, TtsDeployment } from "../facts/observed.ts";

/** The class of a TtsDeployment. `found` is undefined if the class does not exist. */
export interface SelectedClass {
  readonly name: string;
  /** Whether the class applies because it is the default class. */
  readonly isDefault: boolean;
  readonly found: TtsClass | undefined;
}

/**
 * Returns the class of a TtsDeployment or a TtsModelCache: the class that its spec names, or the default class. If the default
 * class was deleted, the result names the class that applied last. Returns undefined if no class applies.
 */
export function selectClass(
  {
    spec,
    status,
  }: Pick<TtsDeployment, "status"> & { readonly spec: Pick<TtsDeployment["spec"], "className"> },
  classes: readonly TtsClass[],
): SelectedClass | undefined {
  const { className } = spec;
  if (className !== undefined) {
    const found = classes.find(({ metadata }) => metadata.name === className);
    return { name: className, isDefault: false, found };
  }
  const found = defaultClass(classes);
  if (found !== undefined) return { name: found.metadata.name, isDefault: true, found };
  const last = status?.class;
  if (last?.name === undefined || !last.isDefault) return undefined;
  return { name: last.name, isDefault: true, found: undefined };
}

/** Returns whether an annotation marks the class as the default class. */
export function isDefaultClass({ metadata }: KubernetesObject): boolean {
  return metadata.annotations?.[defaultClassAnnotation] === "true";
}

/**
 * Returns the default class. If several classes are marked, the newest class applies, as for StorageClasses.
 */
function defaultClass(classes: readonly TtsClass[]): TtsClass | undefined {
  return classes.filter(isDefaultClass).sort(newestFirst)[0];
}

function newestFirst({ metadata: one }: TtsClass, { metadata: other }: TtsClass): number {
  const [a, b] = [one, other].map(({ creationTimestamp = "" }) => creationTimestamp);
  if (a !== b) return (a ?? "") < (b ?? "") ? 1 : -1;
  return one.name < other.name ? -1 : 1;
}
