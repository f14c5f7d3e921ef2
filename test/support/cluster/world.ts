/** Creates namespaces on a real cluster, each with a license, an API key and a client pod. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { CompactSign, importJWK, type JWK } from "jose";
import { stringify } from "yaml";
import type { LicenseClaims } from "../../../config/contract/license.ts";
import { api, children, keysKey, labels, ports } from "../../../config/contract/names.ts";
import { createKey } from "../../../server/store/keys/key.ts";
import { toFileEntry } from "../../../server/store/keys/key-file.ts";
import { eventually } from "../eventually.ts";
import type { ClusterFacts } from "./e2e-setup.ts";
import { allStreaming, type LoadReport, type LoadSettings, loadProgram } from "./load-program.ts";
import { condition, Kubectl, type KubeObject } from "./real-cluster.ts";

export const licenseSecret = "tts-license";
const keysSecret = "tts-keys";

export type LoadOptions = Partial<Pick<LoadSettings, "streams" | "sockets" | "listening">>;

/** A load that a failed test does not stop ends after this time. */
const loadLimitSeconds = 1200;

interface ContainerStatus {
  readonly name: string;
  readonly restartCount: number;
  readonly lastState: unknown;
}

export class World {
  readonly kubectl: Kubectl;
  readonly #cluster: ClusterFacts;
  readonly #key = createKey();
  #client: Promise<unknown> | undefined;

  /** @param what a part of the name of the namespace, which also has a random suffix */
  constructor(cluster: ClusterFacts, what: string) {
    this.#cluster = cluster;
    this.kubectl = new Kubectl(`e2e-${what}-${randomBytes(3).toString("hex")}`);
  }

  get namespace(): string {
    return this.kubectl.namespace;
  }

  /** Returns the header `Authorization` with the API key. */
  get authorization(): string {
    return `Bearer ${this.#key}`;
  }

  /** Creates the namespace, the key Secret and the client pod, without a license. */
  async open(): Promise<void> {
    await this.kubectl.apply(
      {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: this.namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
      },
      secret(keysSecret, {
        [keysKey]: stringify({ keys: [toFileEntry(this.#key, { name: "e2e", scopes: ["tts:write"] })] }),
      }),
      clientPod(this.#cluster.serverImage),
    );
  }

  /** Creates the namespace with its objects, and a `TtsDeployment` in it. */
  async openWith(name: string, spec: Record<string, unknown> = {}): Promise<void> {
    await this.open();
    await this.deploy(name, spec);
  }

  /** Applies a license of 30 days and a `TtsDeployment`, and waits until the `TtsDeployment` is ready. */
  async deploy(name: string, spec: Record<string, unknown> = {}): Promise<void> {
    await this.license(30);
    await this.kubectl.apply(ttsDeployment(name, spec));
    await this.condition(name, "Ready", "True");
  }

  /**
   * Deletes the namespace, and kills its pods, because their drain would take up to a minute. The garbage
   * collector finishes the deletion while the next test runs.
   */
  async close(): Promise<void> {
    await this.kubectl.do("delete", "namespace", this.namespace, "--wait=false", "--ignore-not-found");
    await eventually("the namespace has no pods", async () => {
      await this.kubectl.do("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false");
      return (await this.kubectl.list("pods")).length === 0;
    });
  }

  /** Writes a license for this many days to the Secret. A negative number creates an expired license. */
  async license(days: number, claims: Partial<LicenseClaims> = {}): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    const license: LicenseClaims = {
      iss: "svc-tts",
      sub: "e2e",
      jti: `e2e-${now}`,
      nbf: now - 60 * 86_400,
      exp: now + Math.round(days * 86_400),
      models: ["mist", "mistv2", "arcana"],
      maxGpus: 64,
      maxStreams: 1024,
      graceDays: 7,
      ...claims,
    };
    await this.kubectl.apply(secret(licenseSecret, { "license.jwt": await this.#sign(license) }));
  }

  /** Changes a claim of the license in the Secret, so that its signature is wrong. */
  async forgeLicense(): Promise<void> {
    const found = await this.kubectl.get("secret", licenseSecret);
    const token = Buffer.from(found?.data["license.jwt"] ?? "", "base64").toString();
    const [head, payload = "", signature] = token.split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as LicenseClaims;
    const forged = Buffer.from(JSON.stringify({ ...claims, maxGpus: 1_000_000 })).toString("base64url");
    await this.kubectl.apply(secret(licenseSecret, { "license.jwt": `${head}.${forged}.${signature}` }));
  }

  async #sign(claims: LicenseClaims): Promise<string> {
    const jwk = JSON.parse(readFileSync(this.#cluster.signingKeyFile, "utf8")) as JWK;
    return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
      .setProtectedHeader({ alg: "EdDSA", ...(jwk.kid !== undefined && { kid: jwk.kid }) })
      .sign(await importJWK(jwk, "EdDSA"));
  }

  /** Writes the API key in plain text to a Secret of another namespace. */
  async copyKeyTo(kubectl: Kubectl, name: string): Promise<void> {
    await kubectl.apply(secret(name, { apiKey: this.#key }));
  }

  /** Runs an ES module in the client pod, and returns its output. */
  async run(script: string, ...args: string[]): Promise<string> {
    await this.clientReady();
    return this.kubectl.exec("client", "node", "--input-type=module", "-e", script, ...args);
  }

  /** Resolves when the client pod runs. */
  clientReady(): Promise<unknown> {
    this.#client ??= this.kubectl.do("wait", "--for=condition=Ready", "pod/client", "--timeout=300s");
    return this.#client;
  }

  deployment(name: string): Promise<KubeObject | undefined> {
    return this.kubectl.get("ttsd", name);
  }

  /** Waits until a condition of the current generation has the expected status. */
  async condition(name: string, type: string, status: "True" | "False", message: RegExp = /./) {
    return eventually(
      `${type}=${status} of ${name}`,
      async () => {
        const object = await this.deployment(name);
        const found = condition(object, type);
        const current = object?.status?.observedGeneration === object?.metadata.generation;
        return current && found?.status === status && message.test(found.message) ? found : undefined;
      },
      { seen: async () => (await this.deployment(name))?.status?.conditions },
    );
  }

  /**
   * Requests speech through the Service, from inside the cluster. Returns the status, the content type and
   * the body.
   */
  async speak(deployment: string, body: Record<string, unknown>, accept = "audio/wav") {
    const script = `
      const answer = await fetch(process.argv[1], { method: "POST", body: process.argv[2], headers: {
        "content-type": "application/json", accept: process.argv[3], authorization: "Bearer " + process.argv[4] } });
      const bytes = Buffer.from(await answer.arrayBuffer());
      console.log(JSON.stringify({ status: answer.status, type: answer.headers.get("content-type"), body: bytes.toString("base64") }));`;
    const out = await this.run(script, this.url(deployment), JSON.stringify(body), accept, this.#key);
    const answer = JSON.parse(out) as { status: number; type: string; body: string };
    return { status: answer.status, type: answer.type, body: Buffer.from(answer.body, "base64") };
  }

  /** Requests speech like `speak`. Returns the time to first audio, including the connection setup. */
  async timeFirstAudio(deployment: string, body: Record<string, unknown>) {
    const script = `
      const start = performance.now();
      const answer = await fetch(process.argv[1], { method: "POST", body: process.argv[2], headers: {
        "content-type": "application/json", accept: "audio/pcm", authorization: "Bearer " + process.argv[3] } });
      let firstAudioMs;
      for await (const piece of answer.body) firstAudioMs ??= Math.round(performance.now() - start);
      console.log(JSON.stringify({ status: answer.status, firstAudioMs }));`;
    const out = await this.run(script, this.url(deployment), JSON.stringify(body), this.#key);
    return JSON.parse(out) as { status: number; firstAudioMs: number };
  }

  /**
   * Repeats a request at each deployment until it responds with audio. Returns the time of each first audio, in
   * milliseconds since the epoch.
   */
  async firstAudioTimes(deployments: readonly string[], body: Record<string, unknown>) {
    const script = `
      const [body, key, ...urls] = process.argv.slice(1);
      const headers = { "content-type": "application/json", accept: "audio/pcm", authorization: "Bearer " + key };
      const listen = async (url) => {
        for (const end = Date.now() + 120_000; Date.now() < end; ) {
          const answer = await fetch(url, { method: "POST", body, headers });
          if (answer.status === 200) for await (const piece of answer.body) return Date.now();
          await answer.body?.cancel();
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        throw new Error("no audio from " + url + " after two minutes");
      };
      console.log(JSON.stringify(await Promise.all(urls.map(listen))));
      process.exit(0);`;
    const urls = deployments.map((name) => this.url(name));
    const times = JSON.parse(await this.run(script, JSON.stringify(body), this.#key, ...urls)) as number[];
    return deployments.map((deployment, i) => ({ deployment, atMs: times[i] ?? Number.NaN }));
  }

  /** Requests `GET /health` of the API tier from inside the cluster. */
  async health(deployment: string): Promise<Record<string, unknown>> {
    const script = `console.log(await (await fetch(process.argv[1])).text())`;
    const url = this.url(deployment).replace("/v1/svc-tts", "/health");
    return JSON.parse(await this.run(script, url)) as Record<string, unknown>;
  }

  /**
   * Sends requests with `streams` concurrent streams, and contexts on `sockets` WebSockets, until the load is
   * stopped. A request fails if its response is incomplete or its status is not 200, and a context fails if it has no
   * `done`. Requests and contexts that run when the load is stopped still finish.
   */
  async load(
    deployment: string,
    body: Record<string, unknown>,
    { streams = 4, sockets = 0, listening = false }: LoadOptions = {},
  ) {
    await this.clientReady();
    const stopFile = `/tmp/stop-${randomBytes(4).toString("hex")}`;
    const limitSeconds = loadLimitSeconds;
    const settings: LoadSettings = { streams, sockets, listening, stopFile, limitSeconds, key: this.#key };
    const job = this.kubectl.background(
      "client",
      "node",
      "--input-type=module",
      "-e",
      loadProgram,
      this.url(deployment),
      JSON.stringify(body),
      JSON.stringify(settings),
    );
    const count = (line: RegExp) => [...job.output().matchAll(line)].length;
    const answered = () => count(/^answered$/gm);
    const spoken = () => count(/^spoken$/gm);
    const isEnded = job.ended.then((output) => {
      throw new Error(`the load generator ended before it was stopped: ${output}`);
    });
    const streaming = () =>
      eventually(`${streams} streams and ${sockets} sockets have audio`, () =>
        job.output().includes(allStreaming),
      );
    await Promise.race([streaming(), isEnded]);
    return {
      /** Resolves after one more response for each stream, and one more context for each socket. */
      goesOn: () => {
        const before = { answered: answered(), spoken: spoken() };
        return eventually(
          `${streams} more responses and ${sockets} more contexts end`,
          () => answered() >= before.answered + streams && spoken() >= before.spoken + sockets,
        );
      },
      stop: async (): Promise<LoadReport> => {
        await this.kubectl.exec(
          "client",
          "node",
          "-e",
          `require("node:fs").writeFileSync("${stopFile}", "")`,
        );
        const out = await job.ended;
        const line = out.split("\n").find((l) => l.startsWith("{"));
        if (!line) throw new Error(`the load generator printed no report: ${out}`);
        return JSON.parse(line) as LoadReport;
      },
    };
  }

  /**
   * Describes the restarted containers of a `TtsDeployment`: the cause, the end of the log, and the events.
   */
  async restarts(deployment: string): Promise<string[]> {
    const pods = await this.kubectl.list("pods", `${labels.deployment}=${deployment}`);
    const again = pods.flatMap(({ metadata, status }) =>
      ((status?.containerStatuses ?? []) as ContainerStatus[])
        .filter(({ restartCount }) => restartCount > 0)
        .map((container) => ({ pod: metadata.name, ...container })),
    );
    return Promise.all(
      again.map(async ({ pod, name, lastState }) => {
        const log = await this.kubectl.try("logs", pod, "-c", name, "--previous", "--tail=20");
        const events = await this.kubectl.try("events", "--for", `pod/${pod}`);
        return [`${pod}/${name}: ${JSON.stringify(lastState)}`, log.stdout, events.stdout].join("\n");
      }),
    );
  }

  /** Runs a script (an ES module) that listens on a port, with its own Service. `output` returns its log. */
  async serve(name: string, port: number, script: string, ...args: string[]) {
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name },
      spec: { selector: { "e2e/program": name }, ports: [{ port }] },
    };
    const words = ["--input-type=module", "-e", script, ...args];
    await this.kubectl.apply(service, nodePod(name, this.#cluster.serverImage, words));
    await this.kubectl.do("wait", "--for=condition=Ready", `pod/${name}`, "--timeout=300s");
    return {
      url: `http://${name}.${this.namespace}.svc:${port}`,
      output: () => this.kubectl.do("logs", name),
    };
  }

  url(deployment: string): string {
    return `http://${children.apiService(deployment)}.${this.namespace}.svc:${ports.api}/v1/svc-tts`;
  }
}

function secret(name: string, stringData: Record<string, string>): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
}

/** Returns the client pod, in which tests run programs with `kubectl exec`. */
function clientPod(image: string): object {
  return nodePod("client", image, ["-e", "setInterval(() => {}, 1e9)"]);
}

/** Returns a pod that runs a script with the Node.js of the server image. */
function nodePod(name: string, image: string, args: readonly string[]): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { "e2e/program": name } },
    spec: {
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          name,
          image,
          command: ["node", ...args],
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ["ALL"] },
            readOnlyRootFilesystem: true,
          },
          volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
        },
      ],
      volumes: [{ name: "tmp", emptyDir: {} }],
    },
  };
}

/** These times are shorter than the defaults, so that tests wait less. */
const drain = { endpointDelaySeconds: 3, maxStreamSeconds: 60 };

/** Returns the `TtsDeployment` that most tests use: mist on CPU, and arcana on one GPU. */
export function ttsDeployment(name: string, spec: Record<string, unknown> = {}): object {
  return {
    apiVersion: api.apiVersion,
    kind: "TtsDeployment",
    metadata: { name },
    spec: {
      license: { secretRef: { name: licenseSecret }, gracePeriod: "72h" },
      api: { replicas: 2, keys: { secretRef: { name: keysSecret } }, drain },
      models: [mist(), arcana()],
      ...spec,
    },
  };
}

export function mist(more: Record<string, unknown> = {}): object {
  return {
    name: "mist",
    kind: "mist",
    replicas: 1,
    maxConcurrentStreams: 16,
    drain,
    ...more,
  };
}

export function arcana(more: Record<string, unknown> = {}): object {
  return {
    name: "arcana",
    kind: "arcana",
    replicas: 1,
    accelerator: { count: 1 },
    drain,
    ...more,
  };
}
