import { labels } from "../../config/contract/names.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { ApiError } from "../cluster/api-error.ts";
import type { ClusterClient } from "../cluster/client.ts";
import { resourceOf } from "../cluster/resources.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { Deployment, Pod, TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { type SecretReference, secretReferences } from "./references.ts";

/** The input of `explain`, which is read once with the permissions of the user. */
export interface Evidence {
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  readonly deployment: TtsDeployment;
  readonly pools: readonly TtsModelPool[];
  readonly workloads: readonly Deployment[];
  readonly pods: readonly Pod[];
  /** Warning events about these objects. The latest event is first. */
  readonly warnings: readonly Warning[];
  /**
   * The Secrets that the spec names, and whether each exists. `exists` is `undefined` if the user may not
   * read the Secret. The contents are never read.
   */
  readonly secrets: readonly (SecretReference & { readonly exists: boolean | undefined })[];
  /** The pods of all operators, or `undefined` if the user may not list them. */
  readonly operators: readonly Pod[] | undefined;
  /** Objects that could not be read, with the reasons. */
  readonly unseen: readonly string[];
}

export interface Warning {
  readonly kind: string;
  readonly name: string;
  readonly reason: string;
  readonly note: string;
  readonly times: number;
  /** The time in milliseconds since the epoch. */
  readonly lastSeen: number;
}

/**
 * Reads objects. For an object that does not exist or that the user may not read, it returns a fallback and
 * records the reason.
 */
export class PartialReader {
  readonly unseen: string[] = [];

  async look<T>(what: string, reading: Promise<T>, fallback: T): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      if (!(error instanceof ApiError) || ![401, 403, 404].includes(error.status)) throw error;
      const why = error.status === 404 ? "not found" : "not allowed";
      this.unseen.push(`${what} (${why})`);
      return fallback;
    }
  }
}

/** Returns the label selector of the objects of one TtsDeployment. */
export function deploymentSelector(name: string): string {
  return `${labels.deployment}=${name}`;
}

/** The label selector of the operator's pods, of every release. */
export const operatorSelector = "app.kubernetes.io/name=tts-operator,app.kubernetes.io/component=operator";

/**
 * Reads the input of `explain`. If the TtsDeployment does not exist, it throws a `UsageError` that lists the
 * existing TtsDeployments.
 */
export async function gatherEvidence(
  client: ClusterClient,
  { namespace, name, now }: { namespace: string; name: string; now: number },
): Promise<Evidence> {
  const deployment = await findDeployment(client, namespace, name);
  const reader = new PartialReader();
  const parts = (kind: string, labelSelector = deploymentSelector(name)) =>
    reader.look(resourceOf(kind).plural, client.list(kind, { namespace, labelSelector }), []);
  const [pools, workloads, pods, events, operators] = await Promise.all([
    parts("TtsModelPool"),
    parts("Deployment"),
    parts("Pod"),
    reader.look("events", client.list("Event", { namespace, fieldSelector: "type=Warning" }), []),
    reader.look("operator pods", client.list("Pod", { labelSelector: operatorSelector }), undefined),
  ]);
  const about = new Set([deployment, ...pools, ...workloads, ...pods].map(nameOf));
  return {
    now,
    deployment,
    pools: pools as TtsModelPool[],
    workloads: workloads as Deployment[],
    pods: pods as Pod[],
    warnings: warningsAbout(events, about),
    secrets: await Promise.all(
      secretReferences(deployment.spec).map(async (reference) => ({
        ...reference,
        exists: await exists(client, reader, namespace, reference.name),
      })),
    ),
    operators: operators as Pod[] | undefined,
    unseen: [...new Set(reader.unseen)],
  };
}

async function findDeployment(
  client: ClusterClient,
  namespace: string,
  name: string,
): Promise<TtsDeployment> {
  const { apiVersion } = resourceOf("TtsDeployment");
  const found = await client.get({ apiVersion, kind: "TtsDeployment", namespace, name });
  if (found !== undefined) return found as TtsDeployment;
  const deployments = await client.list("TtsDeployment", { namespace }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) {
      throw new UsageError("this cluster has no kind TtsDeployment; install the CRDs of the operator");
    }
    throw error;
  });
  const existing = deployments.map(({ metadata }) => metadata.name).slice(0, 20);
  throw new UsageError(
    `there is no TtsDeployment ${name} in namespace ${namespace}; ${existing.length > 0 ? `existing ones: ${existing.join(", ")}` : "the namespace has none, see kubectl get ttsd --all-namespaces"}`,
  );
}

async function exists(
  client: ClusterClient,
  reader: PartialReader,
  namespace: string,
  name: string,
): Promise<boolean | undefined> {
  const ref = { apiVersion: "v1", kind: "Secret", namespace, name };
  const reading = client.get(ref, { metadataOnly: true }).then((secret) => secret !== undefined);
  return reader.look(`Secret ${name}`, reading, undefined);
}

function nameOf({ kind, metadata }: KubernetesObject): string {
  return `${kind}/${metadata.name}`;
}

/** An event (events.k8s.io/v1). Older clients write the `deprecated…` fields. */
interface KubeEvent {
  readonly regarding?: { readonly kind?: string; readonly name?: string };
  readonly reason?: string;
  readonly note?: string;
  readonly eventTime?: string | null;
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string };
  readonly deprecatedLastTimestamp?: string | null;
  readonly deprecatedCount?: number;
}

function warningsAbout(events: readonly KubernetesObject[], about: ReadonlySet<string>): Warning[] {
  return (events as readonly (KubernetesObject & KubeEvent)[])
    .filter(({ regarding }) => about.has(`${regarding?.kind}/${regarding?.name}`))
    .map((event) => ({
      kind: event.regarding?.kind ?? "",
      name: event.regarding?.name ?? "",
      reason: event.reason ?? "",
      note: (event.note ?? "").trim(),
      times: event.series?.count ?? event.deprecatedCount ?? 1,
      lastSeen: Date.parse(
        event.series?.lastObservedTime ??
          event.deprecatedLastTimestamp ??
          event.eventTime ??
          event.metadata.creationTimestamp ??
          "",
      ),
    }))
    .sort((one, other) => other.lastSeen - one.lastSeen);
}
