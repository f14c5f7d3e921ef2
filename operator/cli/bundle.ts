import { stringify } from "yaml";
import { children, labels } from "../../config/contract/names.ts";
import { UsageError } from "../../lib/usage-error.ts";
import type { ClusterClient } from "../cluster/client.ts";
import { resourceOf } from "../cluster/resources.ts";
import { optionalKinds } from "../facts/kinds.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { Pod, TtsDeployment } from "../facts/observed.ts";
import { deploymentSelector, gatherEvidence, operatorSelector, PartialReader } from "./evidence.ts";
import { explain, explanationText } from "./explain.ts";
import { Redactor } from "./redact.ts";
import { secretNames } from "./references.ts";

/** The namespace or the TtsDeployment that a support bundle describes. */
export interface BundleScope {
  readonly namespace: string;
  /**
   * The name of one TtsDeployment. If it is undefined, the bundle contains every TtsDeployment of the
   * namespace.
   */
  readonly name: string | undefined;
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  /** The version of this program. */
  readonly version: string;
}

export interface File {
  /** The path in the archive, with forward slashes. */
  readonly path: string;
  readonly content: string;
}

export interface Bundle {
  readonly files: readonly File[];
  /** Objects and files that could not be read, or were omitted because of their size. */
  readonly unseen: readonly string[];
}

const kinds = [
  ...["TtsModelPool", "Deployment", "ReplicaSet", "Pod", "Service", "EndpointSlice", "ServiceAccount"],
  ...["ConfigMap", "Role", "RoleBinding", "HorizontalPodAutoscaler"],
];
/**
 * The number of log lines that the bundle contains for each container. They cover months of an idle
 * container, and minutes of a busy container.
 */
const tailLines = 5_000;
const mostLogBytes = 1024 * 1024;
const mostLogBytesInAll = 48 * 1024 * 1024;
const mostObjects = 500;

/** Collects objects, events, logs and the output of `explain`, all without secrets. */
export async function collectBundle(client: ClusterClient, subject: BundleScope): Promise<Bundle> {
  const collector = new Collector(client, subject);
  const deployments = await collector.deployments();
  const objects = await collector.objects();
  const operators = await collector.operators();
  const pods = [...objects, ...operators].filter(({ kind }) => kind === "Pod") as Pod[];
  const redactor = new Redactor(await collector.secretValues([...deployments, ...pods]));
  const files = [
    ...(await collector.explanations(deployments)),
    ...objectFiles("resources", [...deployments, ...objects], redactor),
    ...objectFiles("operator", operators, redactor),
    ...objectFiles("cluster", await collector.cluster(), redactor),
    await collector.events(redactor),
    ...(await collector.logs(pods)),
  ];
  const clean = files.map(({ path, content }) => ({ path, content: redactor.text(content) }));
  return { files: [readme(subject, collector.unseen), ...clean], unseen: collector.unseen };
}

class Collector {
  readonly #client: ClusterClient;
  readonly #subject: BundleScope;
  readonly #reader = new PartialReader();

  constructor(client: ClusterClient, subject: BundleScope) {
    this.#client = client;
    this.#subject = subject;
  }

  get unseen(): string[] {
    return [...new Set(this.#reader.unseen)];
  }

  async deployments(): Promise<TtsDeployment[]> {
    const { namespace, name } = this.#subject;
    const found = (await this.#client.list("TtsDeployment", { namespace })) as TtsDeployment[];
    const selected = found.filter(({ metadata }) => name === undefined || metadata.name === name);
    if (selected.length > 0) return selected;
    throw new UsageError(
      `there is no TtsDeployment${name === undefined ? "" : ` ${name}`} in namespace ${namespace}`,
    );
  }

  async objects(): Promise<KubernetesObject[]> {
    const { namespace, name } = this.#subject;
    const labelSelector = name === undefined ? labels.deployment : deploymentSelector(name);
    const secrets = this.#client.list("Secret", { namespace, labelSelector, metadataOnly: true });
    const lists = await Promise.all([
      ...[...kinds, ...optionalKinds].map((kind) =>
        this.#list(resourceOf(kind).plural, this.#client.list(kind, { namespace, labelSelector })),
      ),
      this.#list("secrets", secrets),
    ]);
    return lists.flat();
  }

  async operators(): Promise<KubernetesObject[]> {
    const labelSelector = operatorSelector.split(",")[0] ?? "";
    const lists = ["Deployment", "Pod"].map((kind) =>
      this.#list(`operator ${resourceOf(kind).plural}`, this.#client.list(kind, { labelSelector })),
    );
    return (await Promise.all(lists)).flat();
  }

  async cluster(): Promise<KubernetesObject[]> {
    const nodes = await this.#list("nodes", this.#client.list("Node"));
    const definitions = await this.#list("crds", this.#client.list("CustomResourceDefinition"));
    return [
      ...nodes,
      ...definitions
        .filter(({ metadata }) => metadata.name.endsWith(".tts.svc.dev"))
        .map(({ spec: _, ...definition }) => definition as KubernetesObject),
    ];
  }

  async explanations(deployments: readonly TtsDeployment[]): Promise<File[]> {
    const { namespace, now } = this.#subject;
    const all = deployments.map(async ({ metadata: { name } }) => {
      const explanation = explain(await gatherEvidence(this.#client, { namespace, name, now }));
      return [
        { path: `explain/${name}.txt`, content: explanationText(explanation) },
        { path: `explain/${name}.json`, content: `${JSON.stringify(explanation, null, 2)}\n` },
      ];
    });
    return (await Promise.all(all)).flat();
  }

  async events(redactor: Redactor): Promise<File> {
    const { namespace } = this.#subject;
    const events = await this.#list("events", this.#client.list("Event", { namespace }), 4 * mostObjects);
    const lines = events.map((event) => JSON.stringify(redactor.object(event)));
    return { path: "events.jsonl", content: lines.map((line) => `${line}\n`).join("") };
  }

  /**
   * Reads the values of Secrets, only to remove them from all texts. The bundle never contains these values.
   */
  async secretValues(users: readonly KubernetesObject[]): Promise<string[]> {
    const names = new Set(
      users.flatMap((user) => {
        const namespace = user.metadata.namespace ?? this.#subject.namespace;
        return secretsUsedBy(user).map((name) => `${namespace}/${name}`);
      }),
    );
    const values = [...names].map(async (key) => {
      const [namespace = "", name = ""] = key.split("/");
      const reading = this.#client.get({ apiVersion: "v1", kind: "Secret", namespace, name });
      const secret = await this.#reader.look(
        `Secret ${key}, so the files may contain its values`,
        reading,
        undefined,
      );
      return Object.values((secret?.data ?? {}) as Record<string, string>);
    });
    return (await Promise.all(values))
      .flat()
      .map((encoded) => Buffer.from(encoded, "base64").toString("utf8"));
  }

  /** Reads one log after the other, so that the total size stays below the limit. */
  async logs(pods: readonly Pod[]): Promise<File[]> {
    const files: File[] = [];
    let bytes = 0;
    for (const pod of pods) {
      for (const { container, previous } of runsOf(pod)) {
        const path = `logs/${pod.metadata.namespace}/${pod.metadata.name}/${container}${previous ? ".previous" : ""}.log`;
        if (bytes >= mostLogBytesInAll) {
          this.#reader.unseen.push(
            `${path} (omitted: all logs together are larger than ${mostLogBytesInAll} bytes)`,
          );
          continue;
        }
        const content = await this.#log(pod, container, previous);
        if (content === undefined) continue;
        bytes += Buffer.byteLength(content);
        files.push({ path, content });
      }
    }
    return files;
  }

  async #log({ metadata }: Pod, container: string, previous: boolean): Promise<string | undefined> {
    const pod = { namespace: metadata.namespace ?? this.#subject.namespace, name: metadata.name };
    try {
      return await this.#client.logOf(pod, { container, previous, tailLines, limitBytes: mostLogBytes });
    } catch (error) {
      // The bundle omits the log if the node of the pod does not respond.
      this.#reader.unseen.push(
        `log of ${pod.name}/${container} (${error instanceof Error ? error.message : String(error)})`,
      );
      return undefined;
    }
  }

  async #list(
    what: string,
    reading: Promise<KubernetesObject[]>,
    most = mostObjects,
  ): Promise<KubernetesObject[]> {
    const found = await this.#reader.look(what, reading, []);
    if (found.length > most)
      this.#reader.unseen.push(`${found.length - most} of ${found.length} ${what} (omitted)`);
    return found.slice(0, most);
  }
}

interface Spec {
  readonly volumes?: readonly {
    secret?: { secretName?: string };
    projected?: { sources?: readonly { secret?: { name?: string } }[] };
  }[];
}

/**
 * Returns the names of the Secrets in the spec and in a pod's volumes, and of the internal token of a
 * TtsDeployment.
 */
function secretsUsedBy({ kind, metadata, spec }: KubernetesObject): string[] {
  const volumes = (spec as Spec | undefined)?.volumes ?? [];
  const mounted = volumes.flatMap(({ secret, projected }) => [
    secret?.secretName,
    ...(projected?.sources ?? []).map((source) => source.secret?.name),
  ]);
  return [
    ...secretNames(spec),
    ...mounted.filter((name) => name !== undefined),
    ...(kind === "TtsDeployment" ? [children.token(metadata.name)] : []),
  ];
}

function runsOf({ spec, status }: Pod): { container: string; previous: boolean }[] {
  const restarted = new Set(
    [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
      .filter(({ restartCount }) => restartCount > 0)
      .map(({ name }) => name),
  );
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  return containers.flatMap(({ name }) => [
    { container: name, previous: false },
    ...(restarted.has(name) ? [{ container: name, previous: true }] : []),
  ]);
}

function objectFiles(folder: string, objects: readonly KubernetesObject[], redactor: Redactor): File[] {
  return objects.map((object) => ({
    path: `${folder}/${resourceOf(object.kind).plural}/${object.metadata.name}.yaml`,
    content: stringify(redactor.object(object.kind === "Secret" ? bare(object) : object), { lineWidth: 0 }),
  }));
}

/** Removes the annotations of a Secret, because an annotation may contain a copy of the Secret. */
function bare({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const { annotations: _, ...rest } = metadata;
  return { apiVersion, kind, metadata: rest };
}

function readme({ namespace, name, now, version }: BundleScope, unseen: readonly string[]): File {
  const content = `Support bundle for ${name === undefined ? "every TtsDeployment" : `TtsDeployment ${name}`} in namespace ${namespace}
Created by tts-operator ${version} at ${new Date(now).toISOString()}

explain/     why each TtsDeployment is not ready
resources/   the TtsDeployments, and the objects that the operator created for them
operator/    Deployment and pods of the operator
cluster/     nodes, and the versions of the CRDs
events.jsonl events of the namespace
logs/        the end of the log of each container, and of its previous run if it restarted

Secrets are listed by name; no file contains their values. The following were replaced by [redacted]: values of variables that are not settings
of svc-tts, fields and texts that look like keys, tokens and passwords, and every value of the Secrets that the pods use. Names of namespaces,
nodes, images and hosts are unchanged. Read the files before you send them.

Objects that the command could not read: ${unseen.length > 0 ? `\n${unseen.map((line) => `- ${line}`).join("\n")}` : "none."}
`;
  return { path: "README.txt", content };
}
