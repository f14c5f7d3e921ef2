import { mayServe } from "../../config/contract/license.ts";
import { children, ports, requests } from "../../config/contract/names.ts";
import type { Condition, ModelSpec, TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import { apiSettings, ownSettings } from "../desired/pods/deployment.ts";
import { reportedReason } from "../facts/condition-reasons.ts";
import type {
  Deployment,
  LicenseDecision,
  ObservedDeployment,
  ReconcileProblem,
  TtsDeployment,
  TtsModelPool,
} from "../facts/observed.ts";
import type { Diagnosis } from "../workload/diagnosis.ts";
import { type WorkloadState, workloadState } from "../workload/state.ts";
import { classFinding } from "./class.ts";
import { type ConditionState, notStalled, revisionOutdated, settleConditions } from "./conditions.ts";
import { licenseFigures } from "./license.ts";
import {
  acceleratorFinding,
  clockFinding,
  operatorConflictFinding,
  telemetryFinding,
} from "./optional-conditions.ts";
import { gatheredScaling } from "./scaling.ts";
import { schemaFinding } from "./schema.ts";

/** The state of the rollouts that the observed objects do not contain. */
interface DeploymentRollout {
  /** Whether this operator renders a different template for the API pods from the same settings. */
  readonly apiOutdated?: boolean;
  /** The reason why the API pods keep their earlier settings, if any. */
  readonly apiWaits?: Diagnosis | undefined;
  /** The newest revision in the history of each pool. */
  readonly recordedRevisions?: ReadonlyMap<string, string>;
}

/**
 * Returns the status of a TtsDeployment, from the observed objects, the license evaluation, and the problem
 * of the reconcile.
 */
export function deploymentStatus(
  observed: ObservedDeployment,
  judgement: LicenseDecision,
  problem: ReconcileProblem | undefined,
  { apiOutdated = false, apiWaits, recordedRevisions = new Map() }: DeploymentRollout = {},
): TtsDeploymentStatus {
  const { metadata, spec, status } = observed.deployment;
  const pools = spec.models.map((model) => ({ model, pool: poolOf(observed, model) }));
  const states = pools.map(({ model, pool }) => ({ name: `pool ${model.name}`, state: poolState(pool) }));
  const models = pools.map(({ model, pool }) => modelFigures(model, pool, recordedRevisions.get(model.name)));
  const ready = states.filter(({ state }) => state.kind === "ready").length;
  const version = versionOf(observed.api.deployment);
  return {
    observedGeneration: metadata.generation,
    endpoint: `http://${children.apiService(metadata.name)}.${metadata.namespace}.svc:${ports.api}`,
    ...(version !== undefined && { version }),
    summary: {
      models: `${ready}/${states.length}`,
      streams: streamsOf(models),
    },
    conditions: settleConditions(
      status?.conditions,
      [
        ...findings(judgement, apiState(observed, judgement, apiWaits), states, problem),
        ...gatheredScaling(pools),
        ...telemetryFinding(observed),
        ...schemaFinding(observed),
        ...clockFinding(observed),
        ...operatorConflictFinding(observed),
        ...acceleratorFinding(observed),
        ...classFinding(observed.classDecision),
        revisionFinding(observed.deployment, [
          ...(apiOutdated ? ["api"] : []),
          ...pools.flatMap(({ model, pool }) => (isOutdated(pool) ? [`pool ${model.name}`] : [])),
        ]),
      ],
      {
        observedGeneration: metadata.generation,
        now: observed.now,
      },
    ),
    models,
    license: licenseFigures(judgement, observed.now),
    ...(observed.acceptedSpec && { class: observed.acceptedSpec }),
    ...(observed.signer !== undefined && { operator: observed.signer }),
  };
}

/** Returns "used/capacity" if the streams in use are known, and otherwise the capacity. */
function streamsOf(models: TtsDeploymentStatus["models"]): string {
  const total = models.reduce((sum, { capacity }) => sum + capacity.streams, 0);
  const used = models.flatMap(({ capacity }) => capacity.used ?? []);
  return used.length === 0 ? String(total) : `${used.reduce((sum, count) => sum + count, 0)}/${total}`;
}

/**
 * Returns the status of a suspended TtsDeployment. The operator does not observe it, so Ready is Unknown, and
 * all other fields keep their values.
 */
export function suspendedStatus({
  deployment,
  now,
}: Pick<ObservedDeployment, "deployment" | "now">): TtsDeploymentStatus {
  const { metadata, spec, status } = deployment;
  const observedGeneration = metadata.generation;
  const reason = "Suspended";
  const message =
    "spec.suspend is true, so the operator does not change any child. Set spec.suspend to false to continue.";
  const findings: ConditionState[] = [
    { type: "Ready", status: "Unknown", reason, message },
    { type: "Reconciling", status: "False", reason, message },
    { type: "Stalled", status: "False", reason, message },
  ];
  const found = new Set(findings.map(({ type }) => type));
  const kept = (status?.conditions ?? []).filter(({ type }) => !found.has(type));
  const before = status ?? {
    summary: { models: `0/${spec.models.length}`, streams: "0" },
    models: [],
    license: { state: "missing" },
  };
  return {
    ...before,
    observedGeneration,
    conditions: [...settleConditions(status?.conditions, findings, { observedGeneration, now }), ...kept],
  };
}

type NamedState = { readonly name: string; readonly state: WorkloadState };

function poolOf({ pools }: ObservedDeployment, model: ModelSpec): TtsModelPool | undefined {
  return pools.find(({ pool }) => pool.spec.pool === model.name)?.pool;
}

/**
 * Returns the state in the status of a pool. A pool that has not reconciled its current generation is in
 * progress.
 */
function poolState(pool: TtsModelPool | undefined): WorkloadState {
  const ready = conditionOf(pool, "Ready");
  if (!pool || !ready || !isReconciled(pool)) {
    return {
      kind: "progressing",
      problem: { reason: "Creating", message: "Waiting for the pool to reconcile." },
    };
  }
  if (ready.status === "True") return { kind: "ready" };
  const kind = conditionOf(pool, "Stalled")?.status === "True" ? "stalled" : "failing";
  return { kind, problem: { reason: reportedReason(ready.reason), message: ready.message } };
}

/**
 * Returns whether the status describes the current settings of the pool. Scaling changes the generation of a
 * pool, but not the settings of its pods.
 */
function isReconciled({ metadata, spec, status }: TtsModelPool): boolean {
  if (status?.observedGeneration === metadata.generation) return true;
  return (
    spec.scaling !== undefined && status?.settings !== undefined && status.settings === ownSettings({ spec })
  );
}

function conditionOf(pool: TtsModelPool | undefined, type: string): Condition | undefined {
  return pool?.status?.conditions.find((condition) => condition.type === type);
}

function apiState(
  observed: ObservedDeployment,
  judgement: LicenseDecision,
  waits: Diagnosis | undefined,
): WorkloadState {
  const { deployment, api, apiReplicas } = observed;
  const desired = { replicas: apiReplicas, settings: apiSettings(deployment) };
  const state = workloadState(api, judgement.api, desired);
  if (state.kind !== "ready" && !mayAwaitDatabase(observed, state.problem)) return state;
  const problem = missingKeys(observed) ?? missingPassword(observed);
  if (problem) return { kind: "stalled", problem };
  if (state.kind === "ready") return waits === undefined ? state : { kind: "progressing", problem: waits };
  if (state.problem.reason === "RollingOut") return state;
  const message = `${state.problem.message} An API pod becomes ready when it has read the API keys from the database. If this takes long, the log of the pod contains the error.`;
  return { ...state, problem: { ...state.problem, message } };
}

const unreadyReasons = new Set(["PodsNotReady", "RollingOut", "ProgressDeadlineExceeded"]);

/**
 * Returns whether API pods may be unready because they wait for the database. API pods without keys from a
 * Secret become ready when they have read the keys from the database.
 */
function mayAwaitDatabase(
  { deployment: { spec }, keysSecretExists }: ObservedDeployment,
  { reason }: Pick<ReconcileProblem, "reason">,
): boolean {
  const { secretRef, postgres, sqlite } = spec.api.keys ?? {};
  const hasNoOther = secretRef === undefined || keysSecretExists === false;
  return unreadyReasons.has(reason) && hasNoOther && (postgres ?? sqlite) !== undefined;
}

function missingKeys({
  deployment: { metadata, spec },
  keysSecretExists,
}: ObservedDeployment): Pick<ReconcileProblem, "reason" | "message"> | undefined {
  if (keysSecretExists !== false) return undefined;
  const { secretRef, postgres, sqlite } = spec.api.keys ?? {};
  const effect = postgres || sqlite ? "Some clients cannot call the API" : "No client can call the API";
  const message = `${effect}: Secret ${metadata.namespace}/${secretRef?.name} with the API keys is missing. Create the Secret, or name another Secret in api.keys.secretRef.`;
  return { reason: "KeysSecretMissing", message };
}

function missingPassword({
  deployment: { metadata, spec },
  databaseSecretExists,
}: ObservedDeployment): Pick<ReconcileProblem, "reason" | "message"> | undefined {
  if (databaseSecretExists !== false) return undefined;
  const name = spec.api.keys?.postgres?.secretRef?.name;
  const message = `The API keys cannot be read from the database: Secret ${metadata.namespace}/${name} with the password of the database is missing. Create the Secret, or name another Secret in api.keys.postgres.secretRef.`;
  return { reason: "DatabaseSecretMissing", message };
}

function modelFigures(
  { name }: ModelSpec,
  pool: TtsModelPool | undefined,
  recordedRevision: string | undefined,
): TtsDeploymentStatus["models"][number] {
  const { replicas = 0, readyReplicas = 0, currentRevision, updateRevision, capacity } = pool?.status ?? {};
  return {
    name,
    replicas,
    readyReplicas,
    ...(currentRevision !== undefined && { currentRevision }),
    ...(updateRevision !== undefined && { updateRevision }),
    ...(recordedRevision !== undefined && { recordedRevision }),
    capacity: capacity ?? { streams: 0 },
  };
}

/**
 * The limit of the CRD. The tag of an image may be longer, because only the kubelet checks the name of an
 * image.
 */
const longestVersion = 256;

/** Returns the tag of the running API image, or its digest if it has no tag. */
function versionOf(deployment: Deployment | undefined): string | undefined {
  const image = deployment?.spec?.template.spec?.containers[0]?.image;
  if (image === undefined) return undefined;
  const [name = "", digest] = image.split("@");
  const tag = /:([^:/]+)$/.exec(name)?.[1];
  return (tag ?? digest?.slice(0, 19) ?? "latest").slice(0, longestVersion);
}

function findings(
  judgement: LicenseDecision,
  api: WorkloadState,
  pools: readonly NamedState[],
  problem: ReconcileProblem | undefined,
): ConditionState[] {
  const parts = [{ name: "api", state: api }, ...pools];
  const blocked = mainProblem(judgement, parts, problem);
  const { valid, reason, message } = judgement;
  return [
    blocked
      ? { type: "Ready", status: "False", reason: blocked.reason, message: blocked.message }
      : { type: "Ready", status: "True", reason: "Serving", message: "API and models serve as specified." },
    ...progress(blocked),
    { type: "LicenseValid", status: valid ? "True" : "False", reason, message },
    partFinding("ModelsReady", pools, "Every pool serves with its current settings."),
    partFinding("ApiReady", [{ name: "api", state: api }], "Every API pod serves with its current settings."),
    rolloutFinding(parts),
  ];
}

/**
 * Returns the main reason why the TtsDeployment is not ready: first a failed reconcile, then the license,
 * then a stalled part, then a part in progress.
 */
function mainProblem(
  { verdict, reason, message }: LicenseDecision,
  parts: readonly NamedState[],
  problem: ReconcileProblem | undefined,
): ReconcileProblem | undefined {
  if (problem) return problem;
  if (!mayServe(verdict)) return { reason: `License${reason}`, message, stalled: true };
  const worst = worstOf(parts);
  return worst && { ...worst.problem, stalled: worst.kind === "stalled" };
}

function progress(blocked: ReconcileProblem | undefined): ConditionState[] {
  const settled = {
    reason: "Settled",
    message: "The reconciliation is complete; no action is needed.",
  } as const;
  if (blocked === undefined) {
    return [
      { type: "Reconciling", status: "False", ...settled },
      { type: "Stalled", status: "False", ...settled },
    ];
  }
  const { reason, message, stalled } = blocked;
  const idle = {
    reason: "Stalled",
    message: "Waiting for a user to act. The condition Stalled says what to do.",
  } as const;
  return [
    { type: "Reconciling", status: stalled ? "False" : "True", ...(stalled ? idle : { reason, message }) },
    stalled ? { type: "Stalled", status: "True", reason, message } : notStalled,
  ];
}

function partFinding(type: string, parts: readonly NamedState[], good: string): ConditionState {
  const worst = worstOf(parts);
  if (worst === undefined) return { type, status: "True", reason: "Serving", message: good };
  return { type, status: "False", ...worst.problem };
}

function isOutdated(pool: TtsModelPool | undefined): boolean {
  return conditionOf(pool, revisionOutdated)?.status === "True";
}

function revisionFinding({ metadata }: TtsDeployment, outdated: readonly string[]): ConditionState {
  const type = revisionOutdated;
  if (outdated.length === 0)
    return {
      type,
      status: "False",
      reason: "Current",
      message: "All pods have the pod template of this operator version.",
    };
  const command = `kubectl annotate ttsd -n ${metadata.namespace} ${metadata.name} --overwrite ${requests.restart}="$(date -Is)"`;
  const message = `The pods of ${outdated.join(", ")} have the pod template of an earlier operator version, and continue to serve. The operator replaces the pods when their settings change. To replace them now, run: ${command}`;
  return { type, status: "True", reason: "OperatorChanged", message };
}

function rolloutFinding(parts: readonly NamedState[]): ConditionState {
  const type = "RolloutHealthy";
  const stuck = worstOf(parts.filter(({ state }) => state.kind === "stalled"));
  if (stuck) return { type, status: "False", ...stuck.problem };
  const waiting = worstOf(
    parts.filter(({ state }) => state.kind !== "ready" && rolloutReasons.has(state.problem.reason)),
  );
  if (waiting) return { type, status: "True", ...waiting.problem };
  if (worstOf(parts)) return { type, status: "True", reason: "Progressing", message: notStuck };
  return { type, status: "True", reason: "Complete", message: "All pods have their current settings." };
}

/**
 * The message for a TtsDeployment that is not ready and has no stuck rollout. Pods may also be missing
 * without a rollout, for example after the failure of a node.
 */
const notStuck = "No rollout is stuck. The condition Ready says what is missing.";

/** Reasons of a rollout that waits as it is configured. The alert SvcTtsNotReady ignores them. */
const configuredWaits = ["AwaitingMaintenanceWindow", "Canary"];
/** Reasons of a rollout that waits without an error. */
const rolloutReasons = new Set([...configuredWaits, "Trading"]);

const severity = { stalled: 0, failing: 1, progressing: 2 } as const;

/**
 * Returns the order of a state. A configured wait is last, so that it never hides a problem of another part.
 */
function rankOf({ kind, problem }: Exclude<WorkloadState, { kind: "ready" }>): number {
  return configuredWaits.includes(problem.reason) ? severity.progressing + 1 : severity[kind];
}

/** Returns the reason of the worst part, and the messages of all parts that are not ready. */
function worstOf(
  parts: readonly NamedState[],
): { kind: keyof typeof severity; problem: Diagnosis } | undefined {
  const bad = parts.flatMap(({ name, state }) => (state.kind === "ready" ? [] : [{ name, ...state }]));
  bad.sort((a, b) => rankOf(a) - rankOf(b));
  const [worst] = bad;
  if (worst === undefined) return undefined;
  const message = bad.map(({ name, problem }) => `${name}: ${problem.message}`).join(" ");
  return { kind: worst.kind, problem: { reason: worst.problem.reason, message } };
}
