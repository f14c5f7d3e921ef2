/**
 * Reads objects of the cluster over HTTP, by the names that kubectl accepts. A poll costs a request instead
 * of a process.
 */
import { spawn } from "node:child_process";

/**
 * An object of the cluster. Its type is `any`, because tests read fields of some twenty kinds whose types
 * only the API server checks. A wrong name fails the assertion that reads it.
 */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    generation?: number;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    resourceVersion?: string;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind
  spec?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind
  status?: any;
  // biome-ignore lint/suspicious/noExplicitAny: Secrets and ConfigMaps
  data?: any;
}

/** The environment variable in which the suite's set-up passes the address of the proxy to its workers. */
export const apiVariable = "SVC_TTS_TEST_API";

/** Starts a `kubectl proxy` for the cluster of `KUBECONFIG`, on a port that the kernel chooses. */
export function startApiProxy(): Promise<{ readonly url: string; readonly stop: () => void }> {
  const child = spawn("kubectl", ["proxy", "--port=0"], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let output = "";
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`kubectl proxy ended with ${code}: ${output}`)));
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      output += piece;
      const address = /127\.0\.0\.1:\d+/.exec(output)?.[0];
      if (address !== undefined) resolve({ url: `http://${address}`, stop: () => void child.kill() });
    });
  });
}

interface Resource {
  readonly names: readonly string[];
  /** The path of a resource, up to the namespace. */
  readonly path: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  readonly apiVersion: string;
  readonly kind: string;
}

/** An entry of the aggregated discovery document (Kubernetes, "Aggregated discovery"), `apidiscovery.k8s.io/v2`. */
interface DiscoveredGroup {
  readonly metadata: { readonly name?: string };
  readonly versions: readonly {
    readonly version: string;
    readonly resources?: readonly {
      readonly resource: string;
      readonly singularResource?: string;
      readonly shortNames?: readonly string[];
      readonly scope: "Namespaced" | "Cluster";
      readonly responseKind: { readonly kind: string };
    }[];
  }[];
}

const discoveryType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
let known: readonly Resource[] = [];

export async function readObject(
  kind: string,
  namespace: string,
  name: string,
): Promise<KubeObject | undefined> {
  const resource = await resourceOf(kind);
  const answer = await fetch(`${pathOf(resource, namespace)}/${name}`);
  if (answer.status === 404) return void (await answer.body?.cancel());
  return (await bodyOf(answer)) as KubeObject;
}

/** Lists objects. `kinds` may contain several kinds, separated by commas. */
export async function readObjects(kinds: string, namespace: string, selector = ""): Promise<KubeObject[]> {
  const lists = kinds.split(",").map(async (kind) => {
    const resource = await resourceOf(kind);
    const query = new URLSearchParams({ labelSelector: selector });
    const { items } = (await bodyOf(await fetch(`${pathOf(resource, namespace)}?${query}`))) as {
      items: KubeObject[];
    };
    // the API server omits both fields in the items of a list
    return items.map((item) => ({ ...item, apiVersion: resource.apiVersion, kind: resource.kind }));
  });
  return (await Promise.all(lists)).flat();
}

/** The result of a JSON Patch in a dry run. Undefined if the API server rejects it. */
export async function tryPatch(
  kind: string,
  namespace: string,
  name: string,
  operations: readonly object[],
): Promise<KubeObject | undefined> {
  const resource = await resourceOf(kind);
  const answer = await fetch(`${pathOf(resource, namespace)}/${name}?dryRun=All`, {
    method: "PATCH",
    headers: { "content-type": "application/json-patch+json" },
    body: JSON.stringify(operations),
  });
  if ([400, 403, 422].includes(answer.status)) return void (await answer.body?.cancel());
  return (await bodyOf(answer)) as KubeObject;
}

/** Calls back for every existing object of a kind and for each of its later states, until it is stopped. */
export async function watchObjects(
  kind: string,
  namespace: string,
  onState: (object: KubeObject) => void,
): Promise<{ readonly stop: () => Promise<void> }> {
  const resource = await resourceOf(kind);
  const stopping = new AbortController();
  const answer = await fetch(`${pathOf(resource, namespace)}?watch=true&allowWatchBookmarks=true`, {
    signal: stopping.signal,
  });
  if (!answer.ok || answer.body === null) throw new Error(`watch of ${kind}: ${answer.status}`);
  const reading = readLines(answer.body, (line) => {
    const { type, object } = JSON.parse(line) as { type: string; object: KubeObject };
    if (type === "ADDED" || type === "MODIFIED") onState(object);
  }).catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });
  return {
    stop() {
      stopping.abort();
      return reading;
    },
  };
}

async function readLines(body: AsyncIterable<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") onLine(line);
  }
}

/** Returns the output of `kubectl get --raw`. */
export async function readText(path: string): Promise<string> {
  const answer = await fetch(`${apiUrl()}${path}`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${text}`);
  return text;
}

function pathOf({ path, plural, isNamespaced }: Resource, namespace: string): string {
  return `${apiUrl()}${path}${isNamespaced ? `/namespaces/${namespace}` : ""}/${plural}`;
}

async function bodyOf(answer: Response): Promise<unknown> {
  if (!answer.ok) throw new Error(`GET ${answer.url}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

async function resourceOf(name: string): Promise<Resource> {
  const isIt = ({ names }: Resource) => names.includes(name);
  // a kind that was missing may have been installed meanwhile
  if (!known.some(isIt)) known = await discover();
  const found = known.find(isIt);
  if (found === undefined) throw new Error(`the cluster has no kind ${name}`);
  return found;
}

async function discover(): Promise<Resource[]> {
  const found = ["/api", "/apis"].map(async (root) => {
    const answer = await fetch(`${apiUrl()}${root}`, { headers: { accept: discoveryType } });
    const { items } = (await bodyOf(answer)) as { items: DiscoveredGroup[] };
    return items.flatMap((group) => resourcesOf(root, group));
  });
  return (await Promise.all(found)).flat();
}

/** Returns the version that the API server prefers, which is the first one. */
function resourcesOf(root: string, { metadata, versions: [preferred] }: DiscoveredGroup): Resource[] {
  const { version = "", resources = [] } = preferred ?? {};
  const group = metadata.name ?? "";
  const groupVersion = group === "" ? version : `${group}/${version}`;
  return resources.map(({ resource, singularResource = "", shortNames = [], scope, responseKind }) => {
    const { kind } = responseKind;
    return {
      names: [resource, `${resource}.${group}`, singularResource, kind.toLowerCase(), ...shortNames],
      path: `${root}/${groupVersion}`,
      plural: resource,
      isNamespaced: scope === "Namespaced",
      apiVersion: groupVersion,
      kind,
    };
  });
}

function apiUrl(): string {
  const url = process.env[apiVariable];
  if (url === undefined)
    throw new Error(`${apiVariable} is not set: run this test by its suite, as make test-e2e does`);
  return url;
}
