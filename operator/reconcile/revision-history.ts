import { children } from "../../config/contract/names.ts";
import { defaultRevisionHistoryLimit } from "../../crds/rollout-fields.ts";
import type { ModelSpec, TtsDeploymentSpec } from "../../crds/tts-deployment.ts";
import type { Clock } from "../../lib/clock.ts";
import { LruCache } from "../../lib/lru-cache.ts";
import { ApiError } from "../cluster/api-error.ts";
import type { ClusterCache } from "../cluster/cache.ts";
import type { ClusterClient } from "../cluster/client.ts";
import { modelSettings, poolSettings } from "../desired/pods/deployment.ts";
import { type PinnedTemplate, readPinnedTemplate } from "../desired/pods/pinned-template.ts";
import {
  controllerRevision,
  modelOfPool,
  newRevision,
  parseRevision,
  type Revision,
  type RevisionModel,
  revisionName,
  revisionSelector,
  sortedHistory,
} from "../desired/revision.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { ObservedPool, ReconcileProblem, TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { isOwnedBy } from "../facts/ownership.ts";
import { isoSeconds } from "../facts/time.ts";
import { claimOf } from "../rollout/plan.ts";

/** The number of revisions that are kept in memory. Only revisions that `rollbackTo` names are read. */
const rememberedRevisions = 200;

/** A TtsDeployment whose models have the settings of the revisions that `rollbackTo` names. */
export interface RolledBackDeployment {
  readonly deployment: TtsDeployment;
  /**
   * The settings that the pools keep because their revision was not found, by name of the model. They contain
   * the defaults of a class, so they must be applied after the class: the class would refuse them.
   */
  readonly kept: ReadonlyMap<string, RevisionModel>;
  /** The problem of a revision that does not exist, or that the operator may not read. */
  readonly problem: ReconcileProblem | undefined;
}

interface RolledBackModel {
  readonly model: ModelSpec;
  readonly isMissing: boolean;
  /** The settings of the pool if the revision was not found. */
  readonly kept?: RevisionModel | undefined;
  /** The message of the API server if the operator may not read the revision. */
  readonly refusal?: string | undefined;
}

/** The result of recording the current revisions. */
interface RecordedRevisions {
  /** The newest revision in the history, by name of the model. */
  readonly revisions: ReadonlyMap<string, string>;
  /**
   * The error of the first failed request. It does not affect the pods, because they do not depend on the
   * history.
   */
  readonly failure: unknown;
}

/** A pool that runs the settings of this model. */
export interface RecordablePool extends ObservedPool {
  readonly model: ModelSpec;
}

/**
 * Reads and writes the history of pools. The operator does not watch ControllerRevisions, because it needs
 * their content only for a rollback, and writes one only after a rollout.
 */
export class RevisionHistory {
  readonly #client: ClusterClient;
  readonly #view: ClusterCache;
  readonly #clock: Clock;
  readonly #known = new LruCache<string, KubernetesObject>(rememberedRevisions);

  constructor(client: ClusterClient, view: ClusterCache, clock: Clock) {
    this.#client = client;
    this.#view = view;
    this.#clock = clock;
  }

  /**
   * Replaces the settings of each model with `rollbackTo` by the settings of that revision. The limits of the
   * class and of the license apply to the replaced settings.
   */
  async withRollbacks(deployment: TtsDeployment): Promise<RolledBackDeployment> {
    const { models } = deployment.spec;
    if (models.every(({ rollout }) => rollout.rollbackTo === undefined))
      return { deployment, kept: new Map(), problem: undefined };
    const found = await Promise.all(models.map((model) => this.#rolledBack(deployment, model)));
    const refusal = found.find((one) => one.refusal !== undefined)?.refusal;
    const missing = found.flatMap(({ isMissing, model }, index) =>
      isMissing ? [`spec.models[${index}].rollout.rollbackTo is ${model.rollout.rollbackTo}`] : [],
    );
    const rolledBack = {
      ...deployment,
      spec: { ...deployment.spec, models: found.map(({ model }) => model) },
    };
    const kept = new Map(
      found.flatMap(({ model, kept: settings }) =>
        settings === undefined ? [] : [[model.name, settings] as const],
      ),
    );
    if (refusal !== undefined) return { deployment: rolledBack, kept, problem: unreadable(refusal) };
    return {
      deployment: rolledBack,
      kept,
      problem: missing.length === 0 ? undefined : notFound(deployment, missing),
    };
  }

  async #rolledBack(owner: TtsDeployment, model: ModelSpec): Promise<RolledBackModel> {
    const { rollbackTo } = model.rollout;
    if (rollbackTo === undefined) return { model, isMissing: false };
    const pool = this.#poolOf(owner, model.name);
    if (pool === undefined) return { model, isMissing: true };
    const { revision, refusal } = await this.#read(pool, rollbackTo);
    if (revision === undefined) return { model, isMissing: true, kept: modelOfPool(pool), refusal };
    return { model: withSettings(model, revision.model), isMissing: false };
  }

  #poolOf(owner: TtsDeployment, model: string): TtsModelPool | undefined {
    const { namespace, name } = owner.metadata;
    const found = this.#view.get("TtsModelPool", `${namespace}/${children.pool(name, model)}`);
    return found !== undefined && isOwnedBy(found, owner) ? (found as TtsModelPool) : undefined;
  }

  /** Returns the revision, or `undefined` if the history of the pool does not contain it. */
  async find(pool: TtsModelPool, id: string): Promise<Revision | undefined> {
    const name = revisionName(pool, id);
    const { namespace } = pool.metadata;
    const key = `${namespace}/${name}`;
    const known = parseRevision(pool, this.#known.get(key));
    if (known !== undefined) return known;
    const found = await this.#client.get({
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      namespace,
      name,
    });
    const revision = parseRevision(pool, found);
    if (found !== undefined && revision !== undefined) this.#known.set(key, found);
    return revision;
  }

  /** Reads a revision. If the operator may not read it, the result has the message of the API server instead. */
  async #read(
    pool: TtsModelPool,
    id: string,
  ): Promise<{ revision: Revision | undefined; refusal: string | undefined }> {
    try {
      return { revision: await this.find(pool, id), refusal: undefined };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      return { revision: undefined, refusal: error.message };
    }
  }

  /** Returns the template of the revision that `rollbackTo` names, if the pool has the revision's settings. */
  async templateOf(pool: TtsModelPool): Promise<PinnedTemplate | undefined> {
    const { rollbackTo } = pool.spec.rollout;
    if (rollbackTo === undefined) return undefined;
    const { revision } = await this.#read(pool, rollbackTo);
    return revision?.settings === poolSettings(pool) ? revision.pin : undefined;
  }

  /**
   * Records the current revision of each pool whose rollout is complete. It sends no request if nothing has
   * changed.
   */
  async record(deployment: TtsDeployment, pools: readonly RecordablePool[]): Promise<RecordedRevisions> {
    const before = new Map(
      deployment.status?.models.flatMap(({ name, recordedRevision: id }) =>
        id === undefined ? [] : [[name, id] as const],
      ),
    );
    let failure: unknown;
    for (const one of pools) {
      const pin = completePin(one);
      if (pin === undefined || before.get(one.model.name) === pin.revision) continue;
      try {
        if (await this.#recordOne(one, pin)) before.set(one.model.name, pin.revision);
      } catch (error) {
        failure ??= error;
      }
    }
    return { revisions: before, failure };
  }

  /** Makes the template the newest revision. Returns whether it is the newest revision now. */
  async #recordOne(recordable: RecordablePool, pin: PinnedTemplate): Promise<boolean> {
    const { pool, model } = recordable;
    const { namespace } = pool.metadata;
    const stored = await this.#client.list("ControllerRevision", {
      namespace,
      labelSelector: revisionSelector(pool),
    });
    const history = sortedHistory(pool, stored);
    const [newest] = history;
    const known = history.find(({ id }) => id === pin.revision);
    if (known !== undefined && known === newest) return true;
    // The settings of the pool have changed since its template was rendered, so they do not belong to the
    // revision.
    if (known === undefined && modelSettings(pool, claimOf(recordable)) !== pin.specHash) return false;
    const position = { number: (newest?.number ?? 0) + 1, servedSince: isoSeconds(this.#clock.nowMs()) };
    const revision =
      known === undefined ? newRevision(pool, model, pin, position) : { ...known, ...position };
    await this.#client.apply(controllerRevision(pool, revision));
    await this.#prune(
      pool,
      history.filter(({ id }) => id !== revision.id),
    );
    return true;
  }

  /**
   * Deletes the oldest revisions, except the revision that `rollbackTo` names. `others` are the revisions
   * without the current revision.
   */
  async #prune(pool: TtsModelPool, others: readonly Revision[]): Promise<void> {
    const { revisionHistoryLimit = defaultRevisionHistoryLimit, rollbackTo } = pool.spec.rollout;
    const surplus = others.slice(Math.max(0, revisionHistoryLimit - 1)).filter(({ id }) => id !== rollbackTo);
    for (const { id } of surplus) {
      const { namespace } = pool.metadata;
      const name = revisionName(pool, id);
      await this.#client.remove({ apiVersion: "apps/v1", kind: "ControllerRevision", namespace, name });
      this.#known.delete(`${namespace}/${name}`);
    }
  }
}

/** Returns the template of a pool whose pods all have the template of its settings. */
function completePin({ pool, workload }: ObservedPool): PinnedTemplate | undefined {
  const pin = readPinnedTemplate(workload.deployment);
  const { currentRevision, updateRevision } = pool.status ?? {};
  return pin?.revision === currentRevision && pin?.revision === updateRevision ? pin : undefined;
}

/** Returns the model with other settings. Its name, replicas, scaling and rollout are no settings of a revision. */
function withSettings({ name, replicas, scaling, rollout }: ModelSpec, settings: RevisionModel): ModelSpec {
  return {
    ...settings,
    name,
    rollout,
    ...(replicas !== undefined && { replicas }),
    ...(scaling !== undefined && { scaling }),
  };
}

/** Returns the spec with the settings that the pools keep because their revision was not found. */
export function withKeptSettings(
  spec: TtsDeploymentSpec,
  kept: RolledBackDeployment["kept"],
): TtsDeploymentSpec {
  if (kept.size === 0) return spec;
  const models = spec.models.map((model) => withSettings(model, kept.get(model.name) ?? model));
  return { ...spec, models };
}

function notFound({ metadata }: TtsDeployment, missing: readonly string[]): ReconcileProblem {
  const message = `${missing.join(", and ")}, but the history of the pool has no such revision. The pods keep their settings. Choose a revision of the history, or remove rollbackTo: tts-operator history ${metadata.name} -n ${metadata.namespace}`;
  return { reason: "RevisionNotFound", message, stalled: true };
}

function unreadable(refusal: string): ReconcileProblem {
  const message = `The operator may not read the revision that rollbackTo names: ${refusal.replace(/\.$/, "")}. The pods keep their settings. Allow the operator to get controllerrevisions, or remove rollbackTo.`;
  return { reason: "HistoryUnreadable", message, stalled: true };
}
