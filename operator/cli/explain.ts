import type { Condition } from "../../crds/tts-deployment.ts";
import type { Pod, TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { diagnosePods } from "../workload/diagnosis.ts";
import { adviceFor } from "./advice.ts";
import type { Evidence } from "./evidence.ts";

/** The result of `explain`. `-o json` prints this object. */
export interface Explanation {
  readonly namespace: string;
  readonly name: string;
  /**
   * `blocked` means that a user must act. `unwatched` means that no operator has reconciled this generation.
   */
  readonly state: "ready" | "progressing" | "blocked" | "suspended" | "deleting" | "unwatched";
  readonly summary: string;
  /**
   * The problems that prevent readiness now, or that will prevent it soon, such as a license in its grace
   * period. The most important problem is first.
   */
  readonly blockers: readonly Blocker[];
  /** Further findings that do not affect readiness. */
  readonly notes: readonly string[];
  readonly seen: {
    readonly pools: number;
    readonly pods: number;
    readonly secrets: number;
    readonly warnings: number;
  };
  /** Objects that could not be read. A blocker may be missing from the result because of them. */
  readonly unseen: readonly string[];
}

export interface Blocker {
  /** `license`, `API`, `pool mist`, `Secret tts-keys`, `pod demo-api-…`, `operator` or `deletion`. */
  readonly about: string;
  readonly reason: string;
  /** The problem and its remedy. */
  readonly message: string;
  /** The time of the last change, in the format of RFC 3339. */
  readonly since?: string;
  readonly commands: readonly string[];
}

const mostNotes = 10;
/** Older warning events are omitted, because their cause may have ended. */
const freshMs = 30 * 60_000;

/** Explains the state of a TtsDeployment. It sends no requests. */
export function explain(evidence: Evidence): Explanation {
  const { deployment, pools, pods, secrets, warnings, unseen } = evidence;
  const state = stateOf(evidence);
  const blockers =
    state === "ready"
      ? ofCondition(evidence, deployment, "LicenseValid", "license")
      : blockersOf(evidence, state);
  const { name, namespace } = deployment.metadata;
  return {
    namespace,
    name,
    state,
    summary: summaryOf(evidence, state, blockers),
    blockers,
    notes: notesOf(evidence, blockers),
    seen: { pools: pools.length, pods: pods.length, secrets: secrets.length, warnings: warnings.length },
    unseen,
  };
}

function conditionOf(owner: TtsDeployment | TtsModelPool, type: string): Condition | undefined {
  return owner.status?.conditions.find((condition) => condition.type === type);
}

function stateOf({ deployment }: Evidence): Explanation["state"] {
  if (deployment.metadata.deletionTimestamp !== undefined) return "deleting";
  if (deployment.status?.observedGeneration !== deployment.metadata.generation) return "unwatched";
  if (deployment.spec.suspend) return "suspended";
  const ready = conditionOf(deployment, "Ready");
  if (ready === undefined) return "unwatched";
  if (ready.status === "True") return "ready";
  return conditionOf(deployment, "Stalled")?.status === "True" ? "blocked" : "progressing";
}

function summaryOf(
  { deployment, now }: Evidence,
  state: Explanation["state"],
  blockers: readonly Blocker[],
): string {
  const { summary, endpoint } = deployment.status ?? {};
  const since = ageOf(conditionOf(deployment, "Ready")?.lastTransitionTime, now);
  const count = `${blockers.length} ${blockers.length === 1 ? "problem" : "problems"}`;
  const licenseWarning =
    blockers.length > 0 ? " The condition LicenseValid is False; the reason and the remedy follow." : "";
  switch (state) {
    case "ready":
      return `Ready${since}: ${summary?.models} pools, up to ${summary?.streams} concurrent streams, at ${endpoint}.${licenseWarning}`;
    case "progressing":
      return `Not ready${since}. The operator continues; no action is needed so far.`;
    case "blocked":
      return `Not ready${since}. You must act: ${count}.`;
    case "suspended":
      return "Suspended. The operator changes no children until spec.suspend is false.";
    case "deleting":
      return "The TtsDeployment is being deleted.";
    default:
      return "No operator has reconciled the current spec yet.";
  }
}

function ageOf(since: string | undefined, now: number): string {
  if (since === undefined) return "";
  const minutes = Math.max(0, Math.floor((now - Date.parse(since)) / 60_000));
  if (minutes < 1) return " for less than a minute";
  if (minutes < 120) return ` for ${minutes} min`;
  return minutes < 2_880 ? ` for ${Math.floor(minutes / 60)} h` : ` for ${Math.floor(minutes / 1_440)} d`;
}

function blockersOf(evidence: Evidence, state: Explanation["state"]): Blocker[] {
  const found = [
    ...(state === "deleting" ? deletion(evidence) : []),
    ...(state === "unwatched" ? operators(evidence) : []),
    ...(state === "suspended" ? ofCondition(evidence, evidence.deployment, "Ready", "spec") : []),
    ...conditions(evidence),
    ...missingSecrets(evidence),
    ...sickPods(evidence),
  ];
  return withoutRepeats(found);
}

function deletion({ deployment }: Evidence): Blocker[] {
  const { finalizers = [], deletionTimestamp } = deployment.metadata;
  const waitsFor = finalizers.includes("foregroundDeletion")
    ? "the deletion of its children (foreground deletion)"
    : `the finalizers ${finalizers.join(", ") || "of its children"}`;
  const message = `The TtsDeployment waits for ${waitsFor}. Pods finish their streams first, for up to drain.maxStreamSeconds.`;
  return [
    {
      about: "deletion",
      reason: "Deleting",
      message,
      ...(deletionTimestamp && { since: deletionTimestamp }),
      commands: [],
    },
  ];
}

function operators(evidence: Evidence): Blocker[] {
  const found = evidence.operators;
  const blocker = (reason: string, message: string): Blocker[] => [
    { about: "operator", reason, message, commands: commandsOf(evidence, reason) },
  ];
  if (found === undefined) {
    return blocker(
      "OperatorUnseen",
      "You may not list the pods of the operator, so it is unknown whether an operator runs. Ask the administrator of the cluster.",
    );
  }
  if (found.length === 0) {
    return blocker(
      "NoOperator",
      "No operator pod was found in this cluster. Install the chart tts-operator.",
    );
  }
  const names = found
    .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    .slice(0, 5)
    .join(", ");
  return found.some(isReady)
    ? blocker(
        "OperatorElsewhere",
        `An operator runs (${names}), but has not reconciled this TtsDeployment. It may serve only other namespaces (watchNamespaces of the chart), or be busy. Check watchNamespaces, and try again after a minute.`,
      )
    : blocker(
        "OperatorNotReady",
        `The operator's pods are not ready: ${names}. ${diagnosePods(found)?.message ?? "Check their logs."}`,
      );
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}

/**
 * Conditions of a TtsDeployment that report a cause. Conditions that only summarize other conditions are left
 * out.
 */
const deploymentConditions: readonly (readonly [type: string, about: string])[] = [
  ["LicenseValid", "license"],
  ["ApiReady", "API"],
  ["ScalingReady", "scaling"],
  ["RolloutHealthy", "rollout"],
];

function conditions(evidence: Evidence): Blocker[] {
  const { deployment, pools } = evidence;
  const own = deploymentConditions.flatMap(([type, about]) => ofCondition(evidence, deployment, type, about));
  const ofPools = pools.flatMap((pool) => ofCondition(evidence, pool, "Ready", `pool ${pool.spec.pool}`));
  const sums = ofPools.length > 0 ? [] : ofCondition(evidence, deployment, "ModelsReady", "models");
  const stalled = conditionOf(deployment, "Stalled");
  const rest: Blocker[] = stalled?.status === "True" ? [blockerOf(evidence, stalled, "spec")] : [];
  return [...own, ...ofPools, ...sums, ...rest];
}

function ofCondition(
  evidence: Evidence,
  owner: TtsDeployment | TtsModelPool,
  type: string,
  about: string,
): Blocker[] {
  const found = conditionOf(owner, type);
  return found === undefined || found.status === "True" ? [] : [blockerOf(evidence, found, about)];
}

function blockerOf(
  evidence: Evidence,
  { reason, message, lastTransitionTime }: Pick<Condition, "reason" | "message" | "lastTransitionTime">,
  about: string,
): Blocker {
  return {
    about,
    reason,
    message,
    since: lastTransitionTime,
    commands: commandsOf(evidence, reason, message),
  };
}

/** Returns the commands for a reason. If the message names a pod, the commands refer to that pod. */
function commandsOf({ deployment, pods }: Evidence, reason: string, message = ""): readonly string[] {
  const pod = pods.find(({ metadata }) => new RegExp(`\\b${metadata.name}\\b`).test(message));
  const containers = [...(pod?.spec?.initContainers ?? []), ...(pod?.spec?.containers ?? [])];
  const container = containers.find(({ name }) =>
    new RegExp(`(container |-c )${name}\\b`, "i").test(message),
  );
  return adviceFor(reason, {
    deployment,
    pod: pod?.metadata.name,
    container: container?.name,
    modelCaches: modelCachesIn(message, deployment),
  });
}

/** Returns the TtsModelCaches that a message names, or all that the spec names if the message names none. */
function modelCachesIn(message: string, { spec }: TtsDeployment): readonly string[] {
  const names = [...new Set(spec.models.flatMap(({ cache }) => cache?.name ?? []))];
  const named = names.filter((name) => message.includes(`TtsModelCache ${name} `));
  return named.length > 0 ? named : names;
}

function missingSecrets(evidence: Evidence): Blocker[] {
  const { namespace } = evidence.deployment.metadata;
  const license = conditionOf(evidence.deployment, "LicenseValid");
  const isUnused = (path: string) => path === "license.secretRef" && license?.reason === "NotRequired";
  return evidence.secrets
    .filter(({ exists, path }) => exists === false && !isUnused(path))
    .map(({ name, path }) => ({
      about: `Secret ${name}`,
      reason: "SecretMissing",
      message: `Secret ${namespace}/${name}, which spec.${path} names, does not exist. Create the Secret, or change spec.${path}.`,
      commands: [`kubectl -n ${namespace} get secret ${name}`],
    }));
}

/**
 * Returns the problems of all pods. Conditions report only the worst problem, so a second pod may fail for
 * another reason.
 */
function sickPods(evidence: Evidence): Blocker[] {
  return evidence.pods.flatMap((pod) => {
    const found = diagnosePods([pod]);
    if (found === undefined) return [];
    return [
      {
        about: `pod ${pod.metadata.name}`,
        ...found,
        commands: commandsOf(evidence, found.reason, found.message),
      },
    ];
  });
}

/** Removes a blocker about a Secret or a pod that an earlier blocker already reports. */
function withoutRepeats(blockers: readonly Blocker[]): Blocker[] {
  const kept: Blocker[] = [];
  for (const blocker of blockers) {
    const repeats = kept.some(
      ({ message, reason }) =>
        message.includes(blocker.message) ||
        blocker.message.includes(message) ||
        (blocker.reason === "SecretMissing" &&
          message.includes(nameIn(blocker.about)) &&
          /missing/i.test(message + reason)) ||
        (blocker.about.startsWith("pod ") && reason === blocker.reason),
    );
    if (!repeats) kept.push(blocker);
  }
  return kept;
}

function nameIn(about: string): string {
  return about.slice(about.indexOf(" ") + 1);
}

function notesOf(evidence: Evidence, blockers: readonly Blocker[]): string[] {
  const blockerMessages = blockers.map(({ message }) => message).join("\n");
  const unowned = evidence.pools.filter(({ metadata }) => metadata.ownerReferences === undefined);
  return [
    ...unowned.map(
      ({ metadata }) =>
        `TtsModelPool ${metadata.name} was created manually, so the operator starts no pods for it.`,
    ),
    ...evidence.warnings
      .filter(({ lastSeen, note }) => evidence.now - lastSeen < freshMs && !blockerMessages.includes(note))
      .map(
        ({ kind, name, reason, note, times, lastSeen }) =>
          `${kind} ${name}: ${reason}: ${note} (${times === 1 ? "once" : `${times} times`}, last ${agoOf(lastSeen, evidence.now)})`,
      ),
  ].slice(0, mostNotes);
}

function agoOf(then: number, now: number): string {
  const seconds = Math.max(0, Math.floor((now - then) / 1000));
  return seconds < 120 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
}

/** Formats the explanation for a terminal. */
export function explanationText(explanation: Explanation): string {
  const { namespace, name, summary, blockers, notes, seen, unseen } = explanation;
  const lines = [`TtsDeployment ${namespace}/${name}: ${summary}`, ""];
  for (const [index, blocker] of blockers.entries()) lines.push(...blockerLines(blocker, index + 1), "");
  if (notes.length > 0) lines.push("Also found:", ...notes.map((note) => `  - ${note}`), "");
  lines.push(
    `Checked ${seen.pools} pools, ${seen.pods} pods, ${seen.secrets} Secrets (only whether they exist) and ${seen.warnings} warnings.`,
  );
  if (unseen.length > 0) lines.push(`The command could not read: ${unseen.join(", ")}.`);
  return `${lines.join("\n")}\n`;
}

function blockerLines({ about, reason, message, since, commands }: Blocker, number: number): string[] {
  return [
    `${number}. ${about}: ${reason}${since === undefined ? "" : ` (since ${since})`}`,
    `   ${message}`,
    ...commands.map((command) => `   $ ${command}`),
  ];
}
