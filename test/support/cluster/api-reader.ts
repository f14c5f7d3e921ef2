/**
 * Reads objects of the cluster over HTTP, by the names of kinds that kubectl accepts. Tests that poll need a
 * request for each read, and not a kubectl process.
 */
import { spawn } from "node:child_process";

/**
 * An object of the cluster. Some fields have the type `any`, because tests read objects of some twenty kinds.
 * A wrong field name makes the assertion of the test fail.
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
  // biome-ignore lint/suspicious/noExplicitAny: tests read objects of every kind
  spec?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests read objects of every kind
  status?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests read the data of Secrets and ConfigMaps
  data?: any;
}

/**
 * The environment variable that passes the address of the proxy from the setup of the suite to its workers.
 */
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
  /** The URL path of the API version, such as `/apis/apps/v1`. */
  readonly path: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  readonly apiVersion: string;
  readonly kind: string;
}

/** An API group in the aggregated discovery document `apidiscovery.k8s.io/v2` of Kubernetes. */
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
  const response = await fetch(`${pathOf(resource, namespace)}/${name}`);
  if (response.status === 404) return void (await response.body?.cancel());
  return (await bodyOf(response)) as KubeObject;
}

/** Lists objects. `kinds` may contain several kinds, separated by commas. */
export async function readObjects(kinds: string, namespace: string, selector = ""): Promise<KubeObject[]> {
  const lists = kinds.split(",").map(async (kind) => {
    const resource = await resourceOf(kind);
    const query = new URLSearchParams({ labelSelector: selector });
    const { items } = (await bodyOf(await fetch(`${pathOf(resource, namespace)}?${query}`))) as {
      items: KubeObject[];
    };
    // The API server omits apiVersion and kind in the items of a list.
    return items.map((item) => ({ ...item, apiVersion: resource.apiVersion, kind: resource.kind }));
  });
  return (await Promise.all(lists)).flat();
}

/**
 * Applies a JSON Patch in a dry run. Returns the result, or undefined if the API server rejects the patch.
 */
export async function tryPatch(
  kind: string,
  namespace: string,
  name: string,
  operations: readonly object[],
): Promise<KubeObject | undefined> {
  const resource = await resourceOf(kind);
  const response = await fetch(`${pathOf(resource, namespace)}/${name}?dryRun=All`, {
    method: "PATCH",
    headers: { "content-type": "application/json-patch+json" },
    body: JSON.stringify(operations),
  });
  if ([400, 403, 422].includes(response.status)) return void (await response.body?.cancel());
  return (await bodyOf(response)) as KubeObject;
}

/**
 * Calls `onState` for each existing object of a kind and for each later state, until the watch is stopped.
 */
export async function watchObjects(
  kind: string,
  namespace: string,
  onState: (object: KubeObject) => void,
): Promise<{ readonly stop: () => Promise<void> }> {
  const resource = await resourceOf(kind);
  const stopping = new AbortController();
  const response = await fetch(`${pathOf(resource, namespace)}?watch=true&allowWatchBookmarks=true`, {
    signal: stopping.signal,
  });
  if (!response.ok || response.body === null)
    throw new Error(`the watch of ${kind} failed with status ${response.status}`);
  const reading = readLines(response.body, (line) => {
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

/** Returns the response body of a path, like `kubectl get --raw`. */
export async function readText(path: string): Promise<string> {
  const response = await fetch(`${apiUrl()}${path}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${text}`);
  return text;
}

function pathOf({ path, plural, isNamespaced }: Resource, namespace: string): string {
  return `${apiUrl()}${path}${isNamespaced ? `/namespaces/${namespace}` : ""}/${plural}`;
}

async function bodyOf(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`GET ${response.url}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function resourceOf(name: string): Promise<Resource> {
  const matches = ({ names }: Resource) => names.includes(name);
  // A test may have installed the kind after the last discovery.
  if (!known.some(matches)) known = await discover();
  const resource = known.find(matches);
  if (resource === undefined) throw new Error(`the cluster has no resource with the name ${name}`);
  return resource;
}

async function discover(): Promise<Resource[]> {
  const groups = ["/api", "/apis"].map(async (root) => {
    const response = await fetch(`${apiUrl()}${root}`, { headers: { accept: discoveryType } });
    const { items } = (await bodyOf(response)) as { items: DiscoveredGroup[] };
    return items.flatMap((group) => resourcesOf(root, group));
  });
  return (await Promise.all(groups)).flat();
}

/**
 * Returns the resources of an API group in the preferred version, which is the first version of the group.
 */
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
    throw new Error(
      `${apiVariable} is not set: run this test with the setup of its suite, as make test-e2e does`,
    );
  return url;
}
