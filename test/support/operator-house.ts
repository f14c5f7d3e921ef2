import { inject } from "vitest";
import type { RoutingTable } from "../../config/contract/routing.ts";
import { ApiError } from "../../operator/cluster/api-error.ts";
import { ClusterClient } from "../../operator/cluster/client.ts";
import { resourceOf } from "../../operator/cluster/resources.ts";
import { systemClock } from "../../operator/loop/clock.ts";
import type { Manifest } from "../../operator/manifest.ts";
import type { Deployment, TtsDeployment, TtsModelPool } from "../../operator/observed.ts";
import { type Operator, startOperator } from "../../operator/start.ts";
import { chartsRole } from "./charts-role.ts";
import { adminClient, freshNamespace } from "./cluster-namespace.ts";
import { eventually } from "./eventually.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { type Issuer, licenseIssuer } from "./licenses.ts";

type Json = { [name: string]: unknown };
const serverImage = "registry.example/svc-tts/server:0.1.0";

interface StartOptions {
  readonly image?: string;
  /** Instead of one that goes through the proxy. */
  readonly client?: ClusterClient;
  readonly elected?: boolean;
  readonly tokenOverlapMs?: number;
  /** What every API pod says at `/metrics`. */
  readonly metrics?: () => string;
  /** Of the operator's own clock, before the API server's. */
  readonly clockAheadMs?: number;
  /** Which release of the chart it is of. */
  readonly release?: string;
  /** Passes at once. */
  readonly workers?: number;
}

/** Stops a play. */
type Curtain = () => Promise<void>;

/**
 * A namespace (the CRDs are installed already) with an operator of its own in front of the suite's API server, reached under the chart's own role through a
 * proxy that counts and can misbehave. No controller runs pods here: `serve` plays the Deployment controller.
 */
export class OperatorHouse implements AsyncDisposable {
  readonly namespace: string;
  readonly proxy: FaultProxy;
  readonly issuer: Issuer;
  readonly admin: ClusterClient;
  readonly lines: string[] = [];
  #running: { readonly operator: Operator; readonly client: ClusterClient }[] = [];

  private constructor(namespace: string, proxy: FaultProxy, issuer: Issuer, admin: ClusterClient) {
    this.namespace = namespace;
    this.proxy = proxy;
    this.issuer = issuer;
    this.admin = admin;
  }

  /** `clusterWide`: the role that the chart gives an operator which serves every namespace. */
  static async open(
    options: { clusterWide?: boolean } = {},
    address = inject("controlPlane"),
  ): Promise<OperatorHouse> {
    const admin = await adminClient(address);
    const namespace = await freshNamespace(admin, "operator");
    const proxy = await FaultProxy.start(address, await chartsRole(address, namespace, options));
    const house = new OperatorHouse(namespace, proxy, await licenseIssuer(), admin);
    await house.startOperator();
    return house;
  }

  /** Beside those that run. */
  async startOperator(options: StartOptions = {}): Promise<void> {
    const {
      image = serverImage,
      client,
      elected = false,
      tokenOverlapMs,
      metrics,
      clockAheadMs = 0,
      release,
      workers,
    } = options;
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + clockAheadMs };
    const line = (fields: object, message: string) => {
      this.lines.push(`${message} ${JSON.stringify(fields)}`);
    };
    const used = client ?? new ClusterClient(this.proxy.connection(), { clock });
    const operator = await startOperator({
      client: used,
      clock,
      settings: { server: { image, pullPolicy: undefined }, licenseKeys: this.issuer.keys },
      namespaces: [this.namespace],
      instance: "test",
      ...(tokenOverlapMs !== undefined && { tokenOverlapMs }),
      ...(metrics && { readMetrics: async () => metrics() }),
      ...(release !== undefined && { release }),
      ...(workers !== undefined && { workers }),
      ...(elected && { election: { namespace: this.namespace, name: "tts-operator" } }),
      log: { debug: line, info: line, warn: line, error: line },
      onLost: (reason) => line({ reason }, "lost"),
    });
    this.#running.push({ operator, client: used });
  }

  /** All that run. */
  async stopOperator(): Promise<void> {
    const running = this.#running;
    this.#running = [];
    await Promise.all(running.map(({ operator }) => operator.stop()));
    for (const { client } of running) client.close();
  }

  /** As if their processes had died: nobody waits for them, and their connections are closed. */
  abandonOperators(): void {
    for (const { operator, client } of this.#running.splice(0)) {
      client.close();
      void operator.stop();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopOperator();
    await this.proxy[Symbol.asyncDispose]();
    this.admin.close();
  }

  get(kind: string, name: string): Promise<Manifest | undefined> {
    const { apiVersion } = resourceOf(kind);
    return this.admin.get({ apiVersion, kind, namespace: this.namespace, name });
  }

  async mustGet(kind: string, name: string): Promise<Manifest> {
    const found = await this.get(kind, name);
    if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
    return found;
  }

  async deployment(name = "demo"): Promise<TtsDeployment> {
    return (await this.mustGet("TtsDeployment", name)) as TtsDeployment;
  }

  async pool(name: string): Promise<TtsModelPool> {
    return (await this.mustGet("TtsModelPool", name)) as TtsModelPool;
  }

  async workload(name: string): Promise<Deployment> {
    return (await this.mustGet("Deployment", name)) as Deployment;
  }

  async replicas(name: string): Promise<number | undefined> {
    const { spec } = ((await this.get("Deployment", name)) ?? {}) as Partial<Deployment>;
    return spec?.replicas;
  }

  async routing(): Promise<RoutingTable> {
    const { data } = await this.mustGet("ConfigMap", "demo-routing");
    return JSON.parse((data as Record<string, string>)["routing.json"] ?? "");
  }

  /** One condition as `Status Reason: message`. */
  async condition(type: string, name = "demo"): Promise<string> {
    const { status } = await this.deployment(name);
    const found = status?.conditions.find((condition) => condition.type === type);
    return found ? `${found.status} ${found.reason}: ${found.message}` : "absent";
  }

  async putLicense(token: string, name = "license"): Promise<void> {
    await this.#replaceOrCreate({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: this.namespace },
      stringData: { "license.jwt": token },
    });
  }

  remove(kind: string, name: string): Promise<boolean> {
    const { apiVersion } = resourceOf(kind);
    return this.admin.remove({ apiVersion, kind, namespace: this.namespace, name });
  }

  async putDeployment(
    spec: Json = {},
    models: Json[] = [{ name: "mist", kind: "mist" }],
    name = "demo",
  ): Promise<void> {
    await this.#replaceOrCreate({
      apiVersion: "tts.svc.dev/v1alpha1",
      kind: "TtsDeployment",
      metadata: { name, namespace: this.namespace },
      spec: { license: { secretRef: { name: "license" } }, models, ...spec },
    });
  }

  /** As the Deployment controller would, once all pods run. */
  async serve(...names: string[]): Promise<void> {
    for (const name of names) {
      const live = await eventually(`Deployment ${name}`, () => this.workload(name));
      await this.setStatus(live, served(live));
    }
  }

  /** Serves whatever Deployment there is, again and again, until the curtain. */
  play(): Curtain {
    let playing = true;
    const act = async () => {
      while (playing) {
        for (const live of await this.admin.list("Deployment", { namespace: this.namespace })) {
          const { metadata, status } = live as Deployment;
          if (status?.observedGeneration !== metadata.generation) await this.#serveIfThere(metadata.name);
        }
        await new Promise((resolve) => setTimeout(resolve, 40));
      }
    };
    const acting = act();
    return () => {
      playing = false;
      return acting;
    };
  }

  async #serveIfThere(name: string): Promise<void> {
    const live = (await this.get("Deployment", name)) as Deployment | undefined;
    if (live === undefined || live.metadata.deletionTimestamp !== undefined) return;
    await this.setStatus(live, served(live)).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    });
  }

  async setStatus(object: Manifest, status: Json): Promise<void> {
    const { apiVersion, kind, metadata } = object;
    const { name, namespace = this.namespace } = metadata;
    await this.admin.applyStatus({ apiVersion, kind, metadata: { name, namespace }, status });
  }

  /** A valid license and a deployment that is ready. */
  async ready(spec: Json = {}, models?: Json[]): Promise<void> {
    await this.putLicense(await this.issuer.issue());
    await this.putDeployment(spec, models);
    const pools = (models ?? [{ name: "mist" }]).map(({ name }) => `demo-${name}`);
    await this.serve("demo-api", ...pools);
    await this.until(async () => (await this.condition("Ready")).startsWith("True"), "Ready");
  }

  /** Waits for a fact; fails with the conditions as they stand. */
  async until(fact: () => Promise<boolean>, what: string): Promise<void> {
    await eventually(what, fact, { seen: () => this.#report() });
  }

  /** Waits until passes and watches have nothing more to do: no write for `quietMs`. */
  async settled(quietMs = 700): Promise<void> {
    let writes = -1;
    while (writes !== this.proxy.count("write")) {
      writes = this.proxy.count("write");
      await new Promise((resolve) => setTimeout(resolve, quietMs));
    }
  }

  /** What an operator writes that starts anew where nothing is left to do. */
  async writesOfRestart(): Promise<number> {
    await this.settled();
    const before = this.proxy.count("write");
    await this.stopOperator();
    await this.startOperator();
    await this.settled();
    return this.proxy.count("write") - before;
  }

  async #report(): Promise<string> {
    const found = await this.admin.list("TtsDeployment", { namespace: this.namespace });
    const statuses = found.map(({ metadata, status }) => [metadata.name, status]);
    return JSON.stringify([Object.fromEntries(statuses), this.lines.slice(-40)], null, 1);
  }

  /** Read again when the operator wrote a status between our reading and writing. */
  async #replaceOrCreate(manifest: Manifest): Promise<void> {
    for (let conflicts = 0; ; conflicts++) {
      const live = await this.get(manifest.kind, manifest.metadata.name);
      try {
        if (live === undefined) await this.admin.create(manifest);
        else await this.admin.replace({ ...live, ...manifest, metadata: live.metadata });
        return;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 409 || conflicts === 10) throw error;
      }
    }
  }
}

/** What the Deployment controller says once every pod of the current template is ready. */
function served({ metadata, spec }: Deployment): Json {
  const replicas = spec?.replicas ?? 0;
  return {
    observedGeneration: metadata.generation,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
    conditions: [],
  };
}
