/** A namespace of its own on a real cluster, with a license, an API key and a client pod inside the cluster. */
import { readFileSync } from "node:fs";
import { CompactSign, importJWK, type JWK } from "jose";
import { stringify } from "yaml";
import type { LicenseClaims } from "../../config/contract/license.ts";
import { api, children, keysKey, labels, ports } from "../../config/contract/names.ts";
import { createKey } from "../../server/store/key.ts";
import { toFileEntry } from "../../server/store/key-file.ts";
import type { ClusterFacts } from "./e2e-setup.ts";
import { eventually } from "./eventually.ts";
import { condition, Kubectl, type KubeObject } from "./real-cluster.ts";

export interface WorldOptions {
  readonly namespace: string;
  readonly cluster: ClusterFacts;
}

export const licenseSecret = "tts-license";
const keysSecret = "tts-keys";

/** What the load in the client pod saw. */
export interface LoadReport {
  readonly ok: number;
  readonly failures: readonly { readonly atMs: number; readonly what: string }[];
}

interface ContainerStatus {
  readonly name: string;
  readonly restartCount: number;
  readonly lastState: unknown;
}

export class World {
  readonly kubectl: Kubectl;
  readonly #options: WorldOptions;
  readonly #key = createKey();

  constructor(options: WorldOptions) {
    this.#options = options;
    this.kubectl = new Kubectl(options.namespace);
  }

  /** Makes the namespace, the key Secret and the client pod; not the license. */
  async open(): Promise<void> {
    await this.kubectl.apply(
      {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: {
          name: this.#options.namespace,
          labels: { "pod-security.kubernetes.io/enforce": "restricted" },
        },
      },
      secret(keysSecret, {
        [keysKey]: stringify({ keys: [toFileEntry(this.#key, { name: "e2e", scopes: ["tts:write"] })] }),
      }),
      clientPod(this.#options.cluster.serverImage),
    );
    await this.kubectl.do("wait", "--for=condition=Ready", "pod/client", "--timeout=120s");
  }

  /** Pods first: where some are left, a namespace's deletion waits for half of their whole grace, however soon they end. */
  async close(): Promise<void> {
    await this.kubectl.do("delete", "ttsd", "--all", "--timeout=60s");
    await eventually(
      "the pods to be gone",
      async () => (await this.kubectl.list("pods", labels.deployment)).length === 0,
    );
    await this.kubectl.do("delete", "namespace", this.#options.namespace, "--timeout=120s");
  }

  /** Puts a license of this many days into the Secret; negative days made it expire that long ago. */
  async license(days: number, claims: Partial<LicenseClaims> = {}): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    const whole: LicenseClaims = {
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
    await this.kubectl.apply(secret(licenseSecret, { "license.jwt": await this.#sign(whole) }));
  }

  /** Puts a license into the Secret whose content was changed after it was signed. */
  async forgeLicense(): Promise<void> {
    const found = await this.kubectl.get("secret", licenseSecret);
    const token = Buffer.from(found?.data["license.jwt"] ?? "", "base64").toString();
    const [head, payload = "", signature] = token.split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as LicenseClaims;
    const forged = Buffer.from(JSON.stringify({ ...claims, maxGpus: 1_000_000 })).toString("base64url");
    await this.kubectl.apply(secret(licenseSecret, { "license.jwt": `${head}.${forged}.${signature}` }));
  }

  async #sign(claims: LicenseClaims): Promise<string> {
    const jwk = JSON.parse(readFileSync(this.#options.cluster.signingKeyFile, "utf8")) as JWK;
    return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
      .setProtectedHeader({ alg: "EdDSA", ...(jwk.kid !== undefined && { kid: jwk.kid }) })
      .sign(await importJWK(jwk, "EdDSA"));
  }

  /** Puts the API key itself where another namespace's pod can read it. */
  async copyKeyTo(kubectl: Kubectl, name: string): Promise<void> {
    await kubectl.apply(secret(name, { apiKey: this.#key }));
  }

  deployment(name: string): Promise<KubeObject | undefined> {
    return this.kubectl.get("ttsd", name);
  }

  /** Waits until a condition of the current generation is as wanted; on the way there others may be told. */
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

  /** Speaks through the Service, from inside the cluster: status, content type and the body. */
  async speak(deployment: string, body: Record<string, unknown>, accept = "audio/wav") {
    const script = `
      const answer = await fetch(process.argv[1], { method: "POST", body: process.argv[2], headers: {
        "content-type": "application/json", accept: process.argv[3], authorization: "Bearer " + process.argv[4] } });
      const bytes = Buffer.from(await answer.arrayBuffer());
      console.log(JSON.stringify({ status: answer.status, type: answer.headers.get("content-type"), body: bytes.toString("base64") }));`;
    const out = await this.kubectl.exec(
      "client",
      "node",
      "--input-type=module",
      "-e",
      script,
      this.url(deployment),
      JSON.stringify(body),
      accept,
      this.#key,
    );
    const answer = JSON.parse(out) as { status: number; type: string; body: string };
    return { status: answer.status, type: answer.type, body: Buffer.from(answer.body, "base64") };
  }

  /** Speaks as `speak` does, and tells how long the first audio took to come, connecting included. */
  async timeFirstAudio(deployment: string, body: Record<string, unknown>) {
    const script = `
      const start = performance.now();
      const answer = await fetch(process.argv[1], { method: "POST", body: process.argv[2], headers: {
        "content-type": "application/json", accept: "audio/pcm", authorization: "Bearer " + process.argv[3] } });
      let firstAudioMs;
      for await (const piece of answer.body) firstAudioMs ??= Math.round(performance.now() - start);
      console.log(JSON.stringify({ status: answer.status, firstAudioMs }));`;
    const words = [this.url(deployment), JSON.stringify(body), this.#key];
    const out = await this.kubectl.exec("client", "node", "--input-type=module", "-e", script, ...words);
    return JSON.parse(out) as { status: number; firstAudioMs: number };
  }

  /** `GET /health` of the API tier, from inside the cluster. */
  async health(deployment: string): Promise<Record<string, unknown>> {
    const script = `console.log(await (await fetch(process.argv[1])).text())`;
    const url = this.url(deployment).replace("/v1/svc-tts", "/health");
    return JSON.parse(
      await this.kubectl.exec("client", "node", "--input-type=module", "-e", script, url),
    ) as Record<string, unknown>;
  }

  /**
   * Speaks again and again, `streams` at once, until stopped; at most `limitSeconds`. Every answer must be 200 and
   * complete. Stopping lets the running requests finish. `listening` takes the audio no faster than it plays.
   */
  load(
    deployment: string,
    body: Record<string, unknown>,
    { streams = 4, limitSeconds = 150, listening = false } = {},
  ) {
    const job = this.kubectl.background(
      "client",
      "node",
      "--input-type=module",
      "-e",
      loadScript,
      this.url(deployment),
      JSON.stringify(body),
      String(streams),
      String(limitSeconds),
      this.#key,
      String(listening),
    );
    return {
      /** Resolves when every stream has had its first answer begin. */
      speaking: () => eventually(`${streams} streams`, async () => job.output().includes(allSpeak)),
      stop: async (): Promise<LoadReport> => {
        await this.kubectl.exec("client", "node", "-e", 'require("node:fs").writeFileSync("/tmp/stop", "")');
        const out = await job.ended;
        const line = out.split("\n").find((l) => l.startsWith("{"));
        if (!line) throw new Error(`the load printed no report: ${out}`);
        return JSON.parse(line) as LoadReport;
      },
    };
  }

  /** Containers of a deployment that had to be started again, each with why and the last that it said. */
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

  /** A script (ES module) that serves on a port, behind a Service of its own name; `output` is what it printed so far. */
  async serve(name: string, port: number, script: string, ...args: string[]) {
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name },
      spec: { selector: { "e2e/program": name }, ports: [{ port }] },
    };
    const words = ["--input-type=module", "-e", script, ...args];
    await this.kubectl.apply(service, nodePod(name, this.#options.cluster.serverImage, words));
    await this.kubectl.do("wait", "--for=condition=Ready", `pod/${name}`, "--timeout=120s");
    return {
      url: `http://${name}.${this.#options.namespace}.svc:${port}`,
      output: () => this.kubectl.do("logs", name),
    };
  }

  url(deployment: string): string {
    return `http://${children.apiService(deployment)}.${this.#options.namespace}.svc:${ports.api}/v1/svc-tts`;
  }
}

const allSpeak = "every stream speaks";

const loadScript = `
  import { existsSync, rmSync } from "node:fs";
  const [url, body, streams, limit, key, listening] = process.argv.slice(1);
  rmSync("/tmp/stop", { force: true });
  const start = Date.now();
  let ok = 0; const failures = []; const speaking = new Set();
  const take = async (answer) => {
    if (listening !== "true") return (await answer.arrayBuffer()).byteLength;
    const bytesPerMs = 2 * Number(answer.headers.get("x-sampling-rate") ?? 16000) / 1000;
    const began = Date.now();
    let bytes = 0;
    const reader = answer.body.getReader();
    for (;;) {
      let timer;
      const silence = new Promise((_, reject) => { timer = setTimeout(reject, 20_000, "silent for 20 s after " + bytes + " bytes"); });
      const { done, value } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer));
      if (done) break;
      bytes += value.byteLength;
      const aheadMs = bytes / bytesPerMs - (Date.now() - began);
      if (aheadMs > 0) await new Promise((r) => setTimeout(r, aheadMs));
    }
    return bytes;
  };
  const one = async (_, index) => {
    // listeners do not all begin and end together
    if (listening === "true") await new Promise((r) => setTimeout(r, index * 1000));
    while (!existsSync("/tmp/stop") && Date.now() - start < limit * 1000) {
      try {
        const answer = await fetch(url, { method: "POST", body, headers: {
          "content-type": "application/json", accept: "audio/pcm", authorization: "Bearer " + key } });
        speaking.add(index);
        if (speaking.size === Number(streams)) { console.log("${allSpeak}"); speaking.add("told"); }
        const bytes = answer.status === 200 ? await take(answer) : 0;
        if (bytes > 1000) ok++;
        else failures.push({ atMs: Date.now() - start, what: answer.status + ", " + (bytes || (await answer.text())) });
      } catch (error) {
        failures.push({ atMs: Date.now() - start, what: String(error.cause ?? error) });
      }
      await new Promise((r) => setTimeout(r, 50));
    }
  };
  await Promise.all(Array.from({ length: Number(streams) }, one));
  console.log(JSON.stringify({ ok, failures: failures.slice(0, 20) }));`;

function secret(name: string, stringData: Record<string, string>): object {
  return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
}

/** A pod that only waits for `kubectl exec`. */
function clientPod(image: string): object {
  return nodePod("client", image, ["-e", "setInterval(() => {}, 1e9)"]);
}

/** A pod that runs a script: the server image has the one program needed, node. */
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

/** The `TtsDeployment` that the tests start from: mist on CPU, arcana on one GPU. */
export function ttsDeployment(name: string, spec: Record<string, unknown> = {}): object {
  return {
    apiVersion: api.apiVersion,
    kind: "TtsDeployment",
    metadata: { name },
    spec: {
      license: { secretRef: { name: licenseSecret }, gracePeriod: "72h" },
      api: { replicas: 2, keys: { secretRef: { name: keysSecret } } },
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
    drain: { endpointDelaySeconds: 3, maxStreamSeconds: 30 },
    ...more,
  };
}

export function arcana(more: Record<string, unknown> = {}): object {
  return {
    name: "arcana",
    kind: "arcana",
    replicas: 1,
    accelerator: { count: 1 },
    drain: { endpointDelaySeconds: 3, maxStreamSeconds: 30 },
    ...more,
  };
}
