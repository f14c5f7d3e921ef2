/**
 * Runs two API pods of a `TtsDeployment` that share PostgreSQL and Valkey, with an owner and an admin API
 * key.
 */
import { children, labels } from "../../../config/contract/names.ts";
import type { ClusterFacts } from "../cluster/e2e-setup.ts";
import { giveStoresImage, type PodPostgres, podPostgres, startPodValkey } from "../cluster/pod-stores.ts";
import { condition, type KubeObject } from "../cluster/real-cluster.ts";
import { mist, World } from "../cluster/world.ts";
import { eventually } from "../eventually.ts";
import { Visitor } from "./visitor.ts";

export interface AccountsPod {
  readonly pod: string;
  readonly url: string;
  readonly isReady: boolean;
}

export interface Spoken {
  readonly status: number;
  /** The code of a problem document. */
  readonly code: string | undefined;
  readonly headers: Headers;
  readonly audio: Buffer;
}

const name = "shared";
const setupSecret = "tts-dashboard-setup";

export class SharedAccounts {
  readonly name = name;
  readonly world: World;
  readonly postgres: PodPostgres;
  /** A word that no dictionary contains. */
  readonly word = "zorblax";
  owner = new Visitor("");
  /** An API key with every scope. */
  admin = "";
  one = "";
  other = "";

  readonly #cluster: ClusterFacts;

  constructor(cluster: ClusterFacts) {
    this.#cluster = cluster;
    this.world = new World(cluster, "accounts");
    this.postgres = podPostgres(this.world.kubectl, "database");
  }

  async open(): Promise<void> {
    if (!this.#cluster.isLocal)
      throw new Error(
        "these tests need the local cluster, which has the image of PostgreSQL: unset KUBECONFIG",
      );
    const { kubectl } = this.world;
    await Promise.all([giveStoresImage(), this.world.open()]);
    const [valkey] = await Promise.all([startPodValkey(kubectl, "valkey"), this.postgres.start()]);
    const token = `--from-literal=token=${"s3tup".repeat(10)}`;
    await kubectl.do("create", "secret", "generic", setupSecret, token);
    await this.world.deploy(name, {
      api: {
        replicas: 2,
        keys: { postgres: this.postgres.keys },
        dashboard: { url: "https://tts.example.com", setupSecretRef: { name: setupSecret } },
        rateLimit: { valkey },
        drain: { endpointDelaySeconds: 3, maxStreamSeconds: 20 },
      },
      models: [mist()],
    });
    await this.findPods();
  }

  /** Deletes the pods and the data, also after a failed `open`. */
  async close(): Promise<void> {
    await this.world.close();
    await this.postgres.remove();
  }

  /** Returns the setup token, with which the first owner is created. */
  async setupToken(): Promise<string> {
    const secret = await this.world.kubectl.get("secret", setupSecret);
    return Buffer.from(secret?.data.token ?? "", "base64").toString();
  }

  /** Creates the owner through the first pod, and an admin API key with the command line in a pod. */
  async setUp(): Promise<void> {
    const token = await this.setupToken();
    this.owner = new Visitor(this.one);
    await this.owner.get(`/dashboard/setup?token=${token}`);
    await this.owner.post("/dashboard/setup", { token, name: "ada", password: "four plain words here" });
    await this.makeAdminKey();
  }

  async makeAdminKey(): Promise<void> {
    const words = ["keys", "create", "--name", "admin", "--scopes", "admin,tts:write,oov:read"];
    const pod = `deploy/${children.apiService(name)}`;
    const created = await this.world.kubectl.do("exec", pod, "--", "node", "server/main.ts", ...words);
    this.admin = created.trim();
    for (const at of this.pods) {
      await eventually(
        "the admin API key is accepted",
        async () => (await this.statusAt(at, this.admin)) === 200,
      );
    }
  }

  get pods(): readonly string[] {
    return [this.one, this.other];
  }

  async apiPods(): Promise<AccountsPod[]> {
    const selector = `${labels.deployment}=${name},${labels.component}=api`;
    const found: KubeObject[] = await this.world.kubectl.list("pods", selector);
    return found
      .filter(
        ({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.podIP !== undefined,
      )
      .map((pod) => ({
        pod: pod.metadata.name,
        url: `http://${pod.status?.podIP}:8000`,
        isReady: condition(pod, "Ready")?.status === "True",
      }));
  }

  /** Waits for two ready API pods that are not in `before`, and uses them from then on. */
  async findPods(before: readonly string[] = []): Promise<void> {
    const pods = await eventually(
      "two API pods are ready",
      async () => {
        const all = await this.apiPods();
        return all.length === 2 && all.every(({ url, isReady }) => isReady && !before.includes(url)) && all;
      },
      { seen: () => this.apiPods() },
    );
    [this.one = "", this.other = ""] = pods.map(({ url }) => url);
  }

  /** Returns the URL of the Service. */
  async serviceUrl(): Promise<string> {
    const service = await this.world.kubectl.get("service", children.apiService(name));
    return `http://${service?.spec.clusterIP}:8000`;
  }

  async speak(at: string, key: string, text = `The ${this.word}.`): Promise<Spoken> {
    const response = await fetch(`${at}/v1/svc-tts`, {
      method: "POST",
      body: JSON.stringify({ modelId: "mist", speaker: "alan", text, saveOovs: true }),
      headers: { authorization: `Bearer ${key}`, accept: "audio/pcm", "content-type": "application/json" },
    });
    const audio = Buffer.from(await response.arrayBuffer());
    const code = response.ok ? undefined : (JSON.parse(audio.toString()) as { code?: string }).code;
    return { status: response.status, code, headers: response.headers, audio };
  }

  async statusAt(at: string, key: string): Promise<number> {
    return (await this.speak(at, key)).status;
  }

  /** Sends a request to `/v1/keys` of one pod. */
  keysAt(at: string, method: "POST" | "DELETE", path: string, body?: object): Promise<Response> {
    return fetch(`${at}/v1/keys${path}`, {
      method,
      headers: { authorization: `Bearer ${this.admin}`, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  }

  async makeKey(at: string, facts: { readonly name: string; readonly [limit: string]: unknown }) {
    const response = await this.keysAt(at, "POST", "", facts);
    const created = (await response.json()) as { readonly key?: string; readonly code?: string };
    return { status: response.status, key: created.key ?? "", code: created.code };
  }

  /** Creates an API key through one pod, and waits until both pods accept it. */
  async knownKey(name: string, more: object = {}): Promise<string> {
    const { key } = await this.makeKey(this.one, { name, scopes: ["tts:write", "oov:read"], ...more });
    for (const at of this.pods) {
      // This request does not count against the limits of the key.
      await eventually(
        `the API key ${name} is accepted`,
        async () => (await this.wordsAt(at, key)).status !== 401,
      );
    }
    return key;
  }

  wordsAt(at: string, key: string): Promise<Response> {
    return fetch(`${at}/v1/oovs`, { headers: { authorization: `Bearer ${key}` } });
  }
}
