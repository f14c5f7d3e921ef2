import { Compile } from "typebox/compile";
import { Value } from "typebox/value";
import {
  type ClassRecord,
  longestAcceptedSpec,
  type TtsDeploymentSpec,
  TtsDeploymentSpecSchema,
} from "../../crds/tts-deployment.ts";
import type { ClassDecision, TtsClass, TtsDeployment } from "../facts/observed.ts";
import { applyClass } from "./apply-class.ts";
import type { ClassShare } from "./class-allocations.ts";
import { type ClassUse, isAtMost, noUse, useOfSpec } from "./class-use.ts";
import type { ClassViolation } from "./limits.ts";
import { type SelectedClass, selectClass } from "./select-class.ts";

/** A TtsDeployment with the spec that the operator renders. */
export interface ResolvedDeployment {
  /**
   * The TtsDeployment with the defaults of its class. If the class refuses the spec, this is the TtsDeployment
   * with the spec that was last accepted.
   */
  readonly deployment: TtsDeployment;
  /** The decision of the class. It is undefined without a class, and while the TtsDeployment is suspended. */
  readonly decision: ClassDecision | undefined;
  /** The spec that was last accepted, for the status. It is undefined if the status cannot hold it. */
  readonly record: ClassRecord | undefined;
  /** Whether the operator must not change any child, because the class has never accepted a spec. */
  readonly isFrozen: boolean;
  /** The share of the class that the TtsDeployment uses. */
  readonly share: ClassShare | undefined;
}

export interface ClassesOfCluster {
  /** Every class. It is undefined if the operator cannot read classes. */
  readonly classes: readonly TtsClass[] | undefined;
  /**
   * Whether the operator watches single namespaces. Such an operator cannot read classes. It may have the class of
   * its own settings, which applies to every TtsDeployment.
   */
  readonly isNamespaced: boolean;
  /** The share that the operator recorded for the TtsDeployment. The default is the share in its status. */
  readonly own?: ClassShare | undefined;
  /** Returns the use of a class by the other TtsDeployments of the namespace. */
  readonly elsewhere: (className: string) => ClassUse;
  /** Changes the spec with the defaults of the class before it is rendered. */
  readonly adjust?: (spec: TtsDeploymentSpec) => TtsDeploymentSpec;
}

/**
 * Applies the class of a TtsDeployment. Without a class, the TtsDeployment is unchanged. If the class does
 * not exist or does not allow the spec, the result has the spec that was last accepted, so that running pods
 * continue.
 */
export function resolveClass(deployment: TtsDeployment, cluster: ClassesOfCluster): ResolvedDeployment {
  const { classes, isNamespaced, elsewhere } = cluster;
  if (classes === undefined) return refuse(deployment, undefined, "ClassesUnreadable", unreadable);
  const { namespace } = deployment.metadata;
  const { spec } = deployment;
  const selected =
    isNamespaced && spec.className === undefined
      ? classOfSettings(classes)
      : selectClass(deployment, classes);
  if (spec.suspend) return suspended(deployment, selected);
  const { adjust = (same) => same } = cluster;
  if (selected === undefined) return withoutClass(deployment, adjust(spec));
  const { name, found } = selected;
  if (found === undefined)
    return refuse(deployment, selected, "ClassNotFound", missing(deployment, selected, isNamespaced));
  const { maxReplicasPerNamespace, maxGpusPerNamespace } = found.spec.limits;
  const hasSums = (maxReplicasPerNamespace ?? maxGpusPerNamespace) !== undefined;
  const context = { namespace, elsewhere: hasSums ? elsewhere(name) : noUse, adjust };
  const { spec: complete, violations, exceededSums } = applyClass(spec, found.spec, context);
  const problems = [...violations, ...exceededSums];
  if (problems.length === 0) return accept(deployment, selected, complete);
  if (violations.length > 0 || raisesUse(cluster.own ?? storedShare(deployment), name, complete))
    return refuse(deployment, selected, "ClassLimitExceeded", refusal(name, problems, unchanged));
  const message = refusal(name, problems, reduced);
  const decision = { accepted: false, reason: "ClassLimitExceeded", message, isCurrent: true } as const;
  return { ...accept(deployment, selected, complete), decision };
}

/** Returns the class of an operator that watches single namespaces, from its settings. */
export function classOfSettings([found]: readonly TtsClass[]): SelectedClass | undefined {
  return found && { name: found.metadata.name, isDefault: true, found };
}

/**
 * Returns whether the spec requests more of the class than the spec that was last accepted. A namespace may be
 * over a sum, for example because the sum became smaller. A spec that does not request more is then applied.
 */
function raisesUse(earlier: ClassShare | undefined, className: string, spec: TtsDeploymentSpec): boolean {
  return earlier?.className !== className || !isAtMost(useOfSpec(spec), earlier.use);
}

/** Returns the share that the status of a TtsDeployment contains. */
export function storedShare(deployment: TtsDeployment): ClassShare | undefined {
  const accepted = readRecord(deployment);
  return accepted && shareOf(accepted.record.name, accepted.spec);
}

function shareOf(className: string | undefined, spec: TtsDeploymentSpec): ClassShare | undefined {
  return className === undefined ? undefined : { className, use: useOfSpec(spec) };
}

/** A suspended TtsDeployment keeps its pods, so it keeps the share of the spec that was last accepted. */
function suspended(deployment: TtsDeployment, selected: SelectedClass | undefined): ResolvedDeployment {
  const accepted = readRecord(deployment);
  return {
    deployment,
    decision: undefined,
    record: accepted?.record,
    isFrozen: false,
    share: accepted && shareOf(accepted.record.name ?? selected?.name, accepted.spec),
  };
}

/** Records the spec also without a class, because a later edit may name a class that refuses the new spec. */
function withoutClass(deployment: TtsDeployment, rendered: TtsDeploymentSpec): ResolvedDeployment {
  const { spec } = deployment;
  const index = spec.models.findIndex(({ acceleratorProfile }) => acceleratorProfile !== undefined);
  if (index === -1) {
    const record = recordOf(deployment, rendered, undefined);
    const resolved = rendered === spec ? deployment : { ...deployment, spec: rendered };
    return { deployment: resolved, decision: undefined, record, isFrozen: false, share: undefined };
  }
  const { acceleratorProfile } = spec.models[index] ?? {};
  const message = `spec.models[${index}].acceleratorProfile is ${acceleratorProfile}, but no TtsClass applies, so there are no profiles. ${unchanged} Name a TtsClass in spec.className, or set accelerator instead.`;
  return refuse(deployment, undefined, "ClassNotFound", message);
}

const unchanged = "The running pods do not change.";
const reduced =
  "The spec is applied nevertheless, because it requests no more than the spec that was accepted before.";
const unreadable = `The operator cannot read TtsClasses, so it does not know which class applies. ${unchanged} Allow the operator to get, list and watch ttsclasses.`;

function missing({ spec }: TtsDeployment, { name, isDefault }: SelectedClass, isNamespaced: boolean): string {
  if (isNamespaced)
    return `spec.className is ${spec.className}, but this operator watches single namespaces, so it cannot read TtsClasses. ${unchanged} Remove spec.className.`;
  return isDefault
    ? `The default TtsClass ${name} does not exist any more. ${unchanged} Create the TtsClass again, or mark another TtsClass as the default. A TtsClass without limits allows everything.`
    : `spec.className is ${name}, but this TtsClass does not exist. ${unchanged} Create the TtsClass, or change spec.className.`;
}

/** The number of violations that a message lists. */
const mostListed = 10;

function refusal(name: string, violations: readonly ClassViolation[], effect: string): string {
  const listed = violations.slice(0, mostListed).map(({ field, problem }) => `${field} ${problem}.`);
  const more = violations.length > mostListed ? ` There are ${violations.length - mostListed} more.` : "";
  return `TtsClass ${name} does not allow the spec: ${listed.join(" ")}${more} ${effect} Change these fields, or ask an administrator to change the class.`;
}

function accept(
  deployment: TtsDeployment,
  selected: SelectedClass,
  spec: TtsDeploymentSpec,
): ResolvedDeployment {
  const { name, isDefault } = selected;
  const how = isDefault ? ", the default class," : "";
  return {
    deployment: { ...deployment, spec },
    decision: {
      accepted: true,
      reason: "Accepted",
      message: `The spec is within the limits of TtsClass ${name}${how} and has its defaults.`,
      isCurrent: true,
    },
    record: recordOf(deployment, spec, selected),
    isFrozen: false,
    share: shareOf(name, spec),
  };
}

function refuse(
  deployment: TtsDeployment,
  selected: SelectedClass | undefined,
  reason: Exclude<ClassDecision["reason"], "Accepted">,
  message: string,
): ResolvedDeployment {
  const accepted = readRecord(deployment) ?? servedBefore(deployment);
  const isCurrent = accepted?.record?.generation === deployment.metadata.generation;
  const decision: ClassDecision = { accepted: false, reason, message, isCurrent };
  if (accepted === undefined)
    return { deployment, decision, record: undefined, isFrozen: true, share: undefined };
  const { spec } = accepted;
  const record = accepted.record && named(accepted.record, selected);
  return {
    deployment: { ...deployment, spec },
    decision,
    record,
    isFrozen: false,
    share: shareOf(record?.name ?? selected?.name, spec),
  };
}

/**
 * Adds the class to the record of a spec that was accepted without a class. The spec then counts towards the
 * sums of the class, also after a restart of the operator.
 */
function named(record: ClassRecord, selected: SelectedClass | undefined): ClassRecord {
  if (record.name !== undefined || selected === undefined) return record;
  return { ...record, name: selected.name, isDefault: selected.isDefault };
}

/** Returns the record for the status, or undefined if the spec is too long to be stored there. */
function recordOf(
  { metadata }: TtsDeployment,
  spec: TtsDeploymentSpec,
  selected: SelectedClass | undefined,
): ClassRecord | undefined {
  const text = JSON.stringify(spec);
  if (text.length > longestAcceptedSpec) return undefined;
  const { name, isDefault = false } = selected ?? {};
  return { ...(name !== undefined && { name }), isDefault, generation: metadata.generation, spec: text };
}

interface AcceptedSpec<R> {
  readonly record: R;
  readonly spec: TtsDeploymentSpec;
}

const specSchema = Compile(TtsDeploymentSpecSchema);

/**
 * Returns the accepted spec in the status. Users without the right to write the status cannot change it. An
 * earlier version of the operator may have written it, so missing defaults are filled in.
 */
function readRecord({ status }: TtsDeployment): AcceptedSpec<ClassRecord> | undefined {
  const record = status?.class;
  if (record === undefined) return undefined;
  try {
    const spec = Value.Default(TtsDeploymentSpecSchema, JSON.parse(record.spec));
    return specSchema.Check(spec) ? { record, spec } : undefined;
  } catch {
    // The status was changed by hand, so there is no accepted spec.
    return undefined;
  }
}

/**
 * Returns the current spec if an earlier version of the operator rendered it without recording it. The condition
 * ApiReady shows this: the operator sets it only after it rendered the current generation.
 */
function servedBefore(deployment: TtsDeployment): AcceptedSpec<ClassRecord | undefined> | undefined {
  const { metadata, spec, status } = deployment;
  if (status?.class !== undefined) return undefined;
  const rendered = status?.conditions.find(({ type }) => type === "ApiReady");
  if (rendered?.observedGeneration !== metadata.generation) return undefined;
  return { record: recordOf(deployment, spec, undefined), spec };
}
