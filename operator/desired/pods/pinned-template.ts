import { createHash } from "node:crypto";
import { api, labels } from "../../../config/contract/names.ts";
import type { KubernetesObject, V1PodTemplateSpec } from "../../facts/kubernetes-object.ts";
import type { Deployment } from "../../facts/observed.ts";

/**
 * A pod template that is stored with its Deployment. The operator renders a template only when the settings
 * of the user change. A new version of the operator may render a different template or use a newer image, and
 * the stored template prevents a rollout after the upgrade.
 */
export interface PinnedTemplate {
  /** Hash of the settings from which the template was rendered. */
  readonly specHash: string;
  /**
   * Hash of the template. It identifies the template in the status, and reveals manual changes of the
   * annotation.
   */
  readonly revision: string;
  readonly template: V1PodTemplateSpec;
}

const annotations = {
  specHash: `${api.group}/spec-hash`,
  revision: `${api.group}/revision`,
  template: `${api.group}/pod-template`,
} as const;

/** The annotations that hold a stored template. */
export const pinKeys: readonly string[] = Object.values(annotations);

/** The settings of a template, and the function that renders it. */
export interface RenderedTemplate {
  readonly specHash: string;
  readonly render: () => V1PodTemplateSpec;
}

/**
 * Returns the stored template if the settings are unchanged, or if the license holds rollouts. Otherwise it
 * returns a new template.
 */
export function choosePinnedTemplate(
  fresh: RenderedTemplate,
  live: KubernetesObject | undefined,
  held: boolean,
): PinnedTemplate {
  const pinned = readPinnedTemplate(live);
  return pinned !== undefined && (held || pinned.specHash === fresh.specHash) ? pinned : pinTemplate(fresh);
}

/** Renders a template, and adds the revision as a label of the pods. */
export function pinTemplate({ specHash, render }: RenderedTemplate): PinnedTemplate {
  const plain = render();
  const revision = hashOf(plain);
  const marks = { ...plain.metadata?.labels, [labels.revision]: revision };
  return { specHash, revision, template: { ...plain, metadata: { ...plain.metadata, labels: marks } } };
}

/** Returns whether this operator renders a different template from the same settings. */
export function isOutdated(fresh: RenderedTemplate, live: KubernetesObject | undefined): boolean {
  const pinned = readPinnedTemplate(live);
  return pinned?.specHash === fresh.specHash && pinned.revision !== hashOf(fresh.render());
}

export function pinAnnotations({ specHash, revision, template }: PinnedTemplate): Record<string, string> {
  return {
    [annotations.specHash]: specHash,
    [annotations.revision]: revision,
    [annotations.template]: JSON.stringify(template),
  };
}

export function revisionOf(deployment: Deployment | undefined): string | undefined {
  return deployment?.metadata.annotations?.[annotations.revision];
}

/** Returns whether the template of the Deployment was rendered from the settings with this hash. */
export function isRenderedFrom(deployment: Deployment, specHash: string): boolean {
  return deployment.metadata.annotations?.[annotations.specHash] === specHash;
}

/**
 * Returns the template that is stored with this object. Returns `undefined` if no template is stored, or if
 * the template was changed manually.
 */
export function readPinnedTemplate(live: KubernetesObject | undefined): PinnedTemplate | undefined {
  const found = live?.metadata.annotations ?? {};
  const specHash = found[annotations.specHash];
  const revision = found[annotations.revision];
  const template = parse(found[annotations.template]);
  if (specHash === undefined || revision === undefined || template === undefined) return undefined;
  return hashOf(unmarked(template)) === revision ? { specHash, revision, template } : undefined;
}

/** Removes the revision label, because the hash does not include it. */
function unmarked({ metadata, ...template }: V1PodTemplateSpec): V1PodTemplateSpec {
  const { [labels.revision]: _, ...others } = metadata?.labels ?? {};
  return { ...template, metadata: { ...metadata, labels: others } };
}

function parse(text: string | undefined): V1PodTemplateSpec | undefined {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as V1PodTemplateSpec);
  } catch {
    // The annotation was edited manually, so the template is rendered again.
    return undefined;
  }
}

/** Returns ten hexadecimal digits of a SHA-256 digest, which does not depend on the order of keys. */
export function hashOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, sortedKeys)).digest("hex").slice(0, 10);
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
