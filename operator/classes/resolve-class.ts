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
import { type ClassUse, noUse, useOfSpec } from "./class-use.ts";
import type { ClassViolation } from "./limits.ts";
import { type SelectedClass, selectClass } from "./select-class.ts";

/** A TtsDeployment with the spec that the operator renders. */
export interface ResolvedDeployment {
  /**
   * The TtsDeployment with the defaults of its class. If the class refuses the spec, this is the TtsDeployment
   * with the spec that was last accepted.
   */
  readonly deployment: TtsDeployment;
  /** The decision of the class. It is undefined without a class. */
  readonly decision: ClassDecision | undefined;
  /** Whether the operator must not change any child, because the class has never accepted a spec. */
  readonly isFrozen: boolean;
  /** The share of the class that the TtsDeployment uses. */
  readonly share: ClassShare | undefined;
}

export interface ClassesOfCluster {
  readonly classes: readonly TtsClass[];
  /** Whether the operator watches single namespaces. Such an operator cannot read classes. */
  readonly isNamespaced: boolean;
  /** Returns the use of a class by the other TtsDeployments of the namespace. */
  readonly elsewhere: (className: string) => ClassUse;
}

/**
 * Applies the class of a TtsDeployment. Without a class, the TtsDeployment is unchanged. If the class does not
 * exist or does not allow the spec, the result has the spec that was last accepted, so that everything that
 * serves continues.
 */
export function resolveClass(deployment: TtsDeployment, cluster: ClassesOfCluster): ResolvedDeployment {
  const { classes, isNamespaced, elsewhere } = cluster;
  const { namespace } = deployment.metadata;
  const { spec } = deployment;
  const selected =
    isNamespaced && spec.className === undefined ? undefined : selectClass(deployment, classes);
  if (selected === undefined) return withoutClass(deployment);
  const { name, found } = selected;
  if (found === undefined)
    return refuse(deployment, selected, "ClassNotFound", missing(deployment, selected, isNamespaced));
  const { maxReplicasPerNamespace, maxGpusPerNamespace } = found.spec.limits;
  const hasSums = (maxReplicasPerNamespace ?? maxGpusPerNamespace) !== undefined;
  const context = { namespace, elsewhere: hasSums ? elsewhere(name) : noUse };
  const applied = applyClass(spec, found.spec, context);
  if (applied.violations.length > 0)
    return refuse(deployment, selected, "ClassLimitExceeded", refusal(name, applied.violations));
  return accept(deployment, selected, applied.spec);
}

/** Returns the share that the status of a TtsDeployment contains. */
export function storedShare(deployment: TtsDeployment): ClassShare | undefined {
  const accepted = readRecord(deployment);
  return accepted && { className: accepted.record.name, use: useOfSpec(accepted.spec) };
}

function withoutClass(deployment: TtsDeployment): ResolvedDeployment {
  const index = deployment.spec.models.findIndex(
    ({ acceleratorProfile }) => acceleratorProfile !== undefined,
  );
  if (index === -1) return { deployment, decision: undefined, isFrozen: false, share: undefined };
  const { acceleratorProfile } = deployment.spec.models[index] ?? {};
  const message = `spec.models[${index}].acceleratorProfile is ${acceleratorProfile}, but no TtsClass applies, so there are no profiles. ${unchanged} Name a TtsClass in spec.className, or set accelerator instead.`;
  return refuse(deployment, undefined, "ClassNotFound", message);
}

const unchanged = "The running pods do not change.";

function missing({ spec }: TtsDeployment, { name, isDefault }: SelectedClass, isNamespaced: boolean): string {
  if (isNamespaced)
    return `spec.className is ${spec.className}, but this operator watches single namespaces, so it cannot read TtsClasses. ${unchanged} Remove spec.className.`;
  return isDefault
    ? `The default TtsClass ${name} does not exist any more. ${unchanged} Create the TtsClass again, or mark another TtsClass as the default. A TtsClass without limits allows everything.`
    : `spec.className is ${name}, but this TtsClass does not exist. ${unchanged} Create the TtsClass, or change spec.className.`;
}

/** The number of violations that a message lists. */
const mostListed = 10;

function refusal(name: string, violations: readonly ClassViolation[]): string {
  const listed = violations.slice(0, mostListed).map(({ field, problem }) => `${field} ${problem}.`);
  const more = violations.length > mostListed ? ` There are ${violations.length - mostListed} more.` : "";
  return `TtsClass ${name} does not allow the spec: ${listed.join(" ")}${more} ${unchanged} Change these fields, or ask an administrator to change the class.`;
}

function accept(
  deployment: TtsDeployment,
  { name, isDefault }: SelectedClass,
  spec: TtsDeploymentSpec,
): ResolvedDeployment {
  const how = isDefault ? ", the default class," : "";
  return {
    deployment: { ...deployment, spec },
    decision: {
      accepted: true,
      reason: "Accepted",
      message: `The spec is within the limits of TtsClass ${name}${how} and has its defaults.`,
      record: recordOf(deployment, spec, { name, isDefault }),
      isCurrent: true,
    },
    isFrozen: false,
    share: { className: name, use: useOfSpec(spec) },
  };
}

function refuse(
  deployment: TtsDeployment,
  selected: SelectedClass | undefined,
  reason: "ClassNotFound" | "ClassLimitExceeded",
  message: string,
): ResolvedDeployment {
  const accepted = readRecord(deployment) ?? servedBefore(deployment, selected);
  const isCurrent = accepted?.record?.generation === deployment.metadata.generation;
  const decision: ClassDecision = { accepted: false, reason, message, record: accepted?.record, isCurrent };
  if (accepted === undefined) return { deployment, decision, isFrozen: true, share: undefined };
  const { record, spec } = accepted;
  return {
    deployment: { ...deployment, spec },
    decision,
    isFrozen: false,
    share: record && { className: record.name, use: useOfSpec(spec) },
  };
}

type ClassName = Pick<ClassRecord, "name" | "isDefault">;

/** Returns the record for the status, or undefined if the spec is too long to be stored there. */
function recordOf(
  { metadata }: TtsDeployment,
  spec: TtsDeploymentSpec,
  { name, isDefault }: ClassName,
): ClassRecord | undefined {
  const text = JSON.stringify(spec);
  if (text.length > longestAcceptedSpec) return undefined;
  return { name, isDefault, generation: metadata.generation, spec: text };
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
 * Returns the current spec if the operator rendered it before a class applied, for example before the default
 * class was created. The condition ApiReady shows this: the operator sets it only after it rendered the
 * current generation.
 */
function servedBefore(
  deployment: TtsDeployment,
  selected: SelectedClass | undefined,
): AcceptedSpec<ClassRecord | undefined> | undefined {
  const { metadata, spec, status } = deployment;
  if (status?.class !== undefined || selected === undefined) return undefined;
  const rendered = status?.conditions.find(({ type }) => type === "ApiReady");
  if (rendered?.observedGeneration !== metadata.generation) return undefined;
  return { record: recordOf(deployment, spec, selected), spec };
}
