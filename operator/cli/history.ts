import { isDeepStrictEqual } from "node:util";
import { children } from "../../config/contract/names.ts";
import { UsageError } from "../../lib/usage-error.ts";
import type { ClusterClient } from "../cluster/client.ts";
import { type Revision, revisionSelector, sortedHistory } from "../desired/revision.ts";
import type { TtsDeployment, TtsModelPool } from "../facts/observed.ts";

/** The history of one pool, as the commands `history` and `rollback` read it. */
interface PoolHistory {
  readonly model: string;
  readonly pool: TtsModelPool;
  /** The revision that `rollbackTo` names in the TtsDeployment, if any. */
  readonly rollbackTo: string | undefined;
  /** The revisions, the newest first. */
  readonly revisions: readonly Revision[];
}

/** One line of the history. */
export interface RevisionLine {
  readonly model: string;
  readonly revision: string;
  readonly number: number;
  readonly servedSince: string;
  readonly image: string;
  /** The fields of the model that differ from the revision before. */
  readonly changed: readonly string[];
  readonly isCurrent: boolean;
}

type Client = Pick<ClusterClient, "get" | "list">;

const apiVersion = "tts.svc.dev/v1alpha1";

export async function readDeployment(
  client: Client,
  { namespace, name }: { namespace: string; name: string },
): Promise<TtsDeployment> {
  const found = await client.get({ apiVersion, kind: "TtsDeployment", namespace, name });
  if (found !== undefined) return found as TtsDeployment;
  throw new UsageError(
    `TtsDeployment ${name} does not exist in namespace ${namespace}; name its namespace with -n`,
  );
}

/** Reads the history of one model. Throws `UsageError` if the model does not exist. */
export async function readHistory(
  client: Client,
  { metadata, spec }: TtsDeployment,
  model: string,
): Promise<PoolHistory> {
  const { namespace } = metadata;
  const entry = spec.models.find(({ name }) => name === model);
  const poolName = children.pool(metadata.name, model);
  const pool = await client.get({ apiVersion, kind: "TtsModelPool", namespace, name: poolName });
  if (entry === undefined || pool === undefined) {
    const names = spec.models.map(({ name }) => name).join(", ");
    throw new UsageError(
      `TtsDeployment ${metadata.name} has no pool for the model ${model}; its models are: ${names}`,
    );
  }
  const labelSelector = revisionSelector(pool as TtsModelPool);
  const stored = await client.list("ControllerRevision", { namespace, labelSelector });
  return {
    model,
    pool: pool as TtsModelPool,
    rollbackTo: entry.rollout.rollbackTo,
    revisions: sortedHistory(pool as TtsModelPool, stored),
  };
}

export function revisionLines({ model, pool, revisions }: PoolHistory): RevisionLine[] {
  return revisions.map((revision, index) => ({
    model,
    revision: revision.id,
    number: revision.number,
    servedSince: revision.servedSince,
    image: revision.pin.template.spec?.containers[0]?.image ?? "",
    changed: changedFields(revisions[index + 1], revision),
    isCurrent: pool.status?.currentRevision === revision.id,
  }));
}

function changedFields(before: Revision | undefined, after: Revision): string[] {
  if (before === undefined) return [];
  const [old, now] = [before.model, after.model].map((model) => model as Record<string, unknown>);
  const names = new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})]);
  const changed = [...names].filter((name) => !isDeepStrictEqual(old?.[name], now?.[name])).sort();
  return changed.length > 0 ? changed : ["(pod template)"];
}

/** Returns the newest revision except the current revision. */
export function previousRevision({ pool, revisions }: PoolHistory): Revision | undefined {
  return revisions.find(({ id }) => id !== pool.status?.currentRevision);
}
