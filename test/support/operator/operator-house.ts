import { Value } from "typebox/value";
import { afterEach, beforeEach, inject } from "vitest";
import type { LicenseClaims } from "../../../config/contract/license.ts";
import type { ApiLoad } from "../../../config/contract/load.ts";
import type { CacheProgress } from "../../../config/contract/model-cache.ts";
import type { RoutingTable } from "../../../config/contract/routing.ts";
import { type TtsClassSpec, TtsClassSpecSchema } from "../../../crds/tts-class.ts";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import type { WatchState } from "../../../operator/cluster/reflector.ts";
import { resourceOf } from "../../../operator/cluster/resources.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { objectKey } from "../../../operator/facts/object-key.ts";
import type {
  Deployment,
  TtsDeployment,
  TtsModelCache,
  TtsModelPool,
} from "../../../operator/facts/observed.ts";
import type { LicenseScope } from "../../../operator/facts/settings.ts";
import {
  type Activity,
  type FailingWatches,
  type Operator,
  startOperator,
} from "../../../operator/serve/start.ts";
import { chartsRole } from "../cluster/charts-role.ts";
import { adminClient, freshNamespace } from "../cluster/cluster-namespace.ts";
import type { ControlPlaneAddress } from "../cluster/control-plane.ts";
import { kubectlOrThrow } from "../cluster/kubectl.ts";
import { eventually } from "../eventually.ts";
import { SkippingClock, type TestClock } from "../fake-clock.ts";
import { type Issuer, licenseIssuer } from "../server/licenses.ts";
import { FaultProxy } from "./fault-proxy.ts";

type Json = { [name: string]: unknown };
const serverImage = "registry.example/svc-tts/server:0.1.0";

interface HouseOptions {
  /** Whether the operator gets the role of the chart for all namespaces. */
  readonly clusterWide?: boolean;
  /**
   * The clock of the operators. The default follows real time. Start a `FakeClock` at `Date.now()`, because
   * the API server uses real time.
   */
  readonly clock?: TestClock;
}

interface StartOptions {
  readonly image?: string;
  /** A client to use instead of the client that connects through the proxy. */
  readonly client?: ClusterClient;
  readonly elected?: boolean;
  readonly tokenOverlapMs?: number;
  /** Returns the content of `/metrics` of every API pod. */
  readonly metrics?: () => string;
  /** Returns the progress of every pod that fetches model files. */
  readonly progress?: () => CacheProgress;
  /** The time in milliseconds by which the clock of the operator is ahead of the clock of the API server. */
  readonly clockAheadMs?: number;
  /** The name of the Helm release. */
  readonly release?: string;
  /** The number of concurrent reconciles. */
  readonly workers?: number;
  /** Namespaces that the operator watches in addition to `namespace`. */
  readonly moreNamespaces?: readonly string[];
  /** Whether the operator watches all namespaces. It then also reads TtsClasses. */
  readonly allNamespaces?: boolean;
  /** The trusted public keys. The default is `issuer.keys`. */
  readonly licenseKeys?: Issuer["keys"];
  readonly licenseScope?: LicenseScope;
  /** The defaults and limits of an operator that watches single namespaces. */
  readonly classOfSettings?: Json;
}

/** Stops a simulated controller. */
type StopSimulation = () => Promise<void>;

/**
 * Runs an operator in its own namespace, on the API server of the suite. The operator has the role of the
 * chart. It connects through a proxy that records requests and simulates faults. No pods run: `serve`
 * simulates the Deployment controller.
 *
 * Operators use `clock`, which `advance` advances. Their requests and watches use real time like the API
 * server, so that skipped hours do not end a request in progress or an idle watch.
 */
export class OperatorHouse implements AsyncDisposable {
  readonly namespace: string;
  readonly proxy: FaultProxy;
  readonly issuer: Issuer;
  readonly admin: ClusterClient;
  readonly clock: TestClock;
  readonly lines: string[] = [];
  readonly #address: ControlPlaneAddress;
  #running: { readonly operator: Operator; readonly client: ClusterClient }[] = [];
  /**
   * The watches whose objects changed during the last check that failed. The next check lists their kinds
   * first, because a list of every kind takes 60 ms of CPU time.
   */
  #activeWatches: ReadonlySet<string> = new Set();

  private constructor(
    address: ControlPlaneAddress,
    namespace: string,
    proxy: FaultProxy,
    issuer: Issuer,
    admin: ClusterClient,
    clock: TestClock,
  ) {
    this.#address = address;
    this.namespace = namespace;
    this.proxy = proxy;
    this.issuer = issuer;
    this.admin = admin;
    this.clock = clock;
  }

  static async open(options: HouseOptions = {}, address = inject("controlPlane")): Promise<OperatorHouse> {
    const admin = await adminClient(address);
    const namespace = await freshNamespace(admin, "operator");
    const proxy = await FaultProxy.start(address, await chartsRole(address, namespace, options));
    const house = new OperatorHouse(
      address,
      namespace,
      proxy,
      await licenseIssuer(),
      admin,
      options.clock ?? new SkippingClock(),
    );
    await house.startOperator();
    return house;
  }

  /** Starts another operator in addition to the running operators. */
  async startOperator(options: StartOptions = {}): Promise<void> {
    const {
      image = serverImage,
      client,
      elected = false,
      tokenOverlapMs,
      metrics,
      progress,
      clockAheadMs = 0,
      release,
      workers,
      moreNamespaces = [],
      allNamespaces = false,
      licenseKeys = this.issuer.keys,
      licenseScope,
      classOfSettings,
    } = options;
    const spec = classOfSettings && Value.Default(TtsClassSpecSchema, structuredClone(classOfSettings));
    const network = { ...systemClock, nowMs: () => systemClock.nowMs() + clockAheadMs };
    const line = (fields: object, message: string) => {
      this.lines.push(`${message} ${JSON.stringify(fields)}`);
    };
    const used = client ?? new ClusterClient(this.proxy.connection(), { clock: network });
    const operator = await startOperator({
      client: used,
      clock: aheadBy(this.clock, clockAheadMs),
      settings: {
        server: { image, pullPolicy: undefined },
        licenseKeys,
        ...(licenseScope && { licenseScope }),
        ...(spec !== undefined && { class: spec as TtsClassSpec }),
      },
      namespaces: allNamespaces ? [] : [this.namespace, ...moreNamespaces],
      instance: "test",
      ...(tokenOverlapMs !== undefined && { tokenOverlapMs }),
      ...(metrics && { readMetrics: async () => metrics() }),
      ...(progress && { readProgress: async () => progress() }),
      ...(release !== undefined && { release }),
      ...(workers !== undefined && { workers }),
      ...(elected && { election: { namespace: this.namespace, name: "tts-operator" } }),
      log: { debug: line, info: line, warn: line, error: line },
      onLost: (reason) => line({ reason }, "lost"),
    });
    this.#running.push({ operator, client: used });
  }

  /** Stops all running operators. */
  async stopOperator(): Promise<void> {
    const running = this.#running;
    this.#running = [];
    await Promise.all(running.map(({ operator }) => operator.stop()));
    for (const { client } of running) client.close();
  }

  /** Stops all running operators, and starts one operator. */
  async restart(options: StartOptions = {}): Promise<void> {
    await this.stopOperator();
    await this.startOperator(options);
  }

  /**
   * Simulates crashes of all running operators. Their connections are closed, and the test does not wait for
   * them.
   */
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

  failingWatches(): FailingWatches[] {
    return this.#running.flatMap(({ operator }) => operator.failingWatches());
  }

  /** Returns the activity of each running operator. */
  get activities(): Activity[] {
    return this.#running.map(({ operator }) => operator.activity());
  }

  get(kind: string, name: string): Promise<KubernetesObject | undefined> {
    const { apiVersion } = resourceOf(kind);
    return this.admin.get({ apiVersion, kind, namespace: this.namespace, name });
  }

  async mustGet(kind: string, name: string): Promise<KubernetesObject> {
    const found = await this.get(kind, name);
    if (found === undefined) throw new Error(`${kind} ${name} does not exist`);
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

  /** Returns a condition as `Status Reason: message`. */
  async condition(type: string, name = "demo"): Promise<string> {
    const { status } = await this.deployment(name);
    const found = status?.conditions.find((condition) => condition.type === type);
    return found ? `${found.status} ${found.reason}: ${found.message}` : "absent";
  }

  /** Runs kubectl in the namespace as the administrator. Throws the output of kubectl if it fails. */
  kubectl(...words: string[]): Promise<string> {
    return kubectlOrThrow(this.#address, ["-n", this.namespace, ...words]);
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

  /** Creates or replaces a TtsClass. The class is cluster-scoped, so other tests see it too. */
  async putClass(name: string, spec: Json, annotations: Record<string, string> = {}): Promise<void> {
    const metadata = { name, annotations };
    const live = await this.get("TtsClass", name);
    const manifest = { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsClass", metadata, spec };
    if (live === undefined) await this.admin.create(manifest);
    else await this.admin.replace({ ...live, ...manifest, metadata: { ...live.metadata, annotations } });
  }

  /** Creates or replaces a TtsModelCache. The default is a cache with one source. */
  async putCache(spec: Json = {}, name = "voices"): Promise<void> {
    const source = { url: "https://models.example.com/nora.onnx", sha256: "a".repeat(64) };
    await this.#replaceOrCreate({
      apiVersion: "tts.svc.dev/v1alpha1",
      kind: "TtsModelCache",
      metadata: { name, namespace: this.namespace },
      spec: { sources: [source], storage: { claim: { size: "1Gi" } }, ...spec },
    });
  }

  async cache(name = "voices"): Promise<TtsModelCache> {
    return (await this.mustGet("TtsModelCache", name)) as TtsModelCache;
  }

  /** Waits for a condition of a pool or a TtsModelCache, which is matched as `Status Reason: message`. */
  async untilConditionOf(kind: string, name: string, type: string, wanted: RegExp): Promise<void> {
    let last = "";
    const matches = async () => {
      const { status } = (await this.get(kind, name)) as Partial<TtsModelCache>;
      const found = status?.conditions.find((condition) => condition.type === type);
      last = found ? `${found.status} ${found.reason}: ${found.message}` : "absent";
      return wanted.test(last);
    };
    await eventually(`condition ${type} of ${kind} ${name} matches ${wanted}`, matches, { seen: () => last });
  }

  /** Changes an annotation, which causes a reconcile. */
  async touch(value: string): Promise<void> {
    const live = await this.deployment();
    const annotations = { ...live.metadata.annotations, value };
    await this.admin.replace({ ...live, metadata: { ...live.metadata, annotations } });
  }

  /** Writes the status of Deployments like the Deployment controller when all pods run. */
  async serve(...names: string[]): Promise<void> {
    for (const name of names) {
      const live = await eventually(`Deployment ${name} exists`, () => this.workload(name));
      await this.setStatus(live, served(live));
    }
  }

  /** Writes the status of every Deployment as `serve` does, until the returned function is called. */
  play(): StopSimulation {
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

  async setStatus(object: KubernetesObject, status: Json): Promise<void> {
    const { apiVersion, kind, metadata } = object;
    const { name, namespace = this.namespace } = metadata;
    await this.admin.applyStatus({ apiVersion, kind, metadata: { name, namespace }, status });
  }

  /** Creates a valid license and a TtsDeployment, and waits until the TtsDeployment is ready. */
  async ready(spec: Json = {}, models?: Json[], claims?: Partial<LicenseClaims>): Promise<void> {
    await this.putLicense(await this.issuer.issue(claims));
    await this.putDeployment(spec, models);
    const pools = (models ?? [{ name: "mist" }]).map(({ name }) => `demo-${name}`);
    await this.serve("demo-api", ...pools);
    await this.untilReady();
  }

  /** Waits until a fact is true. The error of a failed wait contains the statuses and the last log lines. */
  async until(fact: () => Promise<boolean>, what: string): Promise<void> {
    await eventually(what, fact, { seen: () => this.#report() });
  }

  /** @param wanted matches the condition as `Status Reason: message` */
  untilCondition(type: string, wanted: RegExp, name?: string): Promise<void> {
    return this.until(
      async () => wanted.test(await this.condition(type, name)),
      `condition ${type} matches ${wanted}`,
    );
  }

  untilReady(name?: string): Promise<void> {
    return this.untilCondition("Ready", /^True/, name);
  }

  untilThere(kind: string, name: string): Promise<void> {
    return this.until(async () => (await this.get(kind, name)) !== undefined, `${kind} ${name} exists`);
  }

  untilGone(kind: string, name: string): Promise<void> {
    return this.until(async () => (await this.get(kind, name)) === undefined, `${kind} ${name} is deleted`);
  }

  /** @param name the name of a Deployment */
  untilReplicas(name: string, count: number): Promise<void> {
    return this.until(async () => (await this.replicas(name)) === count, `${name} has ${count} replicas`);
  }

  /**
   * Waits until all operators are idle: no key is queued, no reconcile runs, no request is in progress, and
   * every watch has reported the current objects. It does not wait for timers: see {@link advance}.
   */
  async idle(): Promise<void> {
    await eventually("the operators are idle", () => this.#isIdle(), {
      seen: () => this.activities.map(summaryOf),
    });
  }

  /** Advances the clock. After each timer that fires, waits until the resulting work has ended. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.clock.monotonicMs() + durationMs;
    await this.idle();
    for (let nowMs = this.clock.monotonicMs(); nowMs < endMs; nowMs = this.clock.monotonicMs()) {
      const stopMs = Math.min(endMs, Math.max(nowMs, this.clock.nextDueMs ?? endMs));
      const passes = this.#passes();
      await this.clock.advance(stopMs - nowMs);
      if (passes === undefined || passes !== this.#passes()) await this.idle();
    }
  }

  /**
   * Advances the clock, and returns the requests that operators sent meanwhile. Watches are left out, because
   * they use real time.
   */
  async requestsDuring(durationMs: number): Promise<string[]> {
    await this.idle();
    const before = this.proxy.requests.length;
    await this.advance(durationMs);
    const sent = this.proxy.requests.slice(before).filter(({ watch }) => !watch);
    return sent.map(({ method, path }) => `${method} ${path}`);
  }

  /** Advances the clock, and returns the number of writes that operators sent meanwhile. */
  async writesDuring(durationMs: number): Promise<number> {
    await this.idle();
    const before = this.proxy.count("write");
    await this.advance(durationMs);
    return this.proxy.count("write") - before;
  }

  /** Waits until an operator has received the current report of an API pod, and is idle. */
  async hears({ load }: { readonly load: ApiLoad }): Promise<void> {
    const expected = JSON.stringify(load);
    const isKnown = () =>
      this.activities.some(({ loads }) =>
        [...loads.values()].some((known) => JSON.stringify(known) === expected),
      );
    await this.until(async () => isKnown(), "an operator has received the load report of the API pod");
    await this.idle();
  }

  /**
   * Returns the number of reconciles that all operators have started, or undefined while an operator is busy.
   */
  #passes(): number | undefined {
    const all = this.activities;
    const isBusy = ({ queue, requests, events }: Activity) =>
      queue.waiting + queue.running + requests + events > 0;
    return all.some(isBusy) ? undefined : all.reduce((sum, { queue }) => sum + queue.begun, 0);
  }

  async #isIdle(): Promise<boolean> {
    const passes = this.#passes();
    if (passes === undefined) return false;
    const watches = () => this.activities.flatMap((activity) => activity.watches);
    const before = new Map(watches().map((watch) => [idOf(watch), versionsIn(watch.versions)]));
    const listed = new Map<string, string>();
    const list = async (watch: WatchState) => listed.set(idOf(watch), await this.#versionsOf(watch));
    const areCurrent = (some: WatchState[]) =>
      some.every((watch) => listed.get(idOf(watch)) === versionsIn(watch.versions)) &&
      this.#passes() === passes;
    const bySelection = [...new Map(watches().map((watch) => [idOf(watch), watch])).values()];
    const active = bySelection.filter((watch) => this.#activeWatches.has(idOf(watch)));
    await Promise.all(active.map(list));
    if (!areCurrent(active)) return false;
    await Promise.all(bySelection.filter((watch) => !active.includes(watch)).map(list));
    if (areCurrent(watches())) return true;
    const changed = watches().filter(
      (watch) => new Set([before, listed].map((known) => known.get(idOf(watch)))).size > 1,
    );
    this.#activeWatches = new Set(changed.map(idOf));
    return false;
  }

  /** Returns the current objects of a watch with their resource versions, as text. */
  async #versionsOf({ kind, selection }: WatchState): Promise<string> {
    try {
      const found = await this.admin.list(kind, { ...selection, metadataOnly: true });
      return versionsIn(new Map(found.map((object) => [objectKey(object), object.metadata.resourceVersion])));
    } catch (error) {
      // Status 404 means that the CRD was deleted together with its objects.
      if (error instanceof ApiError && error.status === 404) return versionsIn(new Map());
      throw error;
    }
  }

  /** Restarts the operator, and returns the number of writes until it is idle. */
  async writesOfRestart(options: StartOptions = {}): Promise<number> {
    await this.idle();
    const before = this.proxy.count("write");
    await this.restart(options);
    await this.idle();
    return this.proxy.count("write") - before;
  }

  async #report(): Promise<string> {
    const found = await this.admin.list("TtsDeployment", { namespace: this.namespace });
    const statuses = found.map(({ metadata, status }) => [metadata.name, status]);
    return JSON.stringify([Object.fromEntries(statuses), this.lines.slice(-40)], null, 1);
  }

  /** Replaces or creates an object. It retries after a conflict with a status write of the operator. */
  async #replaceOrCreate(manifest: KubernetesObject): Promise<void> {
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

/** Opens an `OperatorHouse` before each test, and closes it after the test. */
export function useOperatorHouse(assign: (house: OperatorHouse) => void): void {
  let house: OperatorHouse | undefined;
  beforeEach(async () => {
    house = await OperatorHouse.open();
    assign(house);
  });
  afterEach(async () => {
    await house?.[Symbol.asyncDispose]();
    house = undefined;
  });
}

function aheadBy(clock: TestClock, aheadMs: number): Clock {
  return {
    nowMs: () => clock.nowMs() + aheadMs,
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, callback) => clock.after(delayMs, callback),
  };
}

function idOf({ kind, selection }: WatchState): string {
  return JSON.stringify([kind, selection]);
}

function versionsIn(versions: WatchState["versions"]): string {
  return JSON.stringify([...versions].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function summaryOf({ watches, loads, ...activity }: Activity): object {
  return { ...activity, watches: watches.map(idOf), loads: [...loads.keys()] };
}

/**
 * Returns the status that the Deployment controller writes when every pod with the current template is ready.
 */
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
