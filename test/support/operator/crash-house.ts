/**
 * Tests crashes of the operator directly after its n-th write. The API server processes the write, but the
 * response is lost, and the operator sends no further request.
 */
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import type { TtsDeployment } from "../../../operator/facts/observed.ts";
import { turnOf } from "../seed.ts";
import type { FaultProxy, ProxiedRequest } from "./fault-proxy.ts";
import { OperatorHouse } from "./operator-house.ts";

/**
 * A run crashes the operator after every `step`-th write. `make test-operator-faults` sets 1, which covers
 * all writes.
 */
const step = Number(process.env.CRASH_STEP ?? 11);
const overlapMs = 100;

/** The spec and models of the TtsDeployment that operators create, change and delete while they crash. */
export const crashSpec = {
  networkPolicy: { enabled: true },
  api: { replicas: 2, route: { hostnames: ["tts.example.com"], ingress: {} } },
};
export const crashModels = [
  { name: "mist", kind: "mist", replicas: 2 },
  { name: "old", kind: "mist" },
];

export type Fate = "died" | "survived";

/** The state of an operator that a test crashes. */
export interface Death {
  writes: number;
  dead: boolean;
  /** The last write before the crash. */
  last: string;
}

/**
 * Returns the numbers of the writes after which the operator crashes. Eleven consecutive seeds cover all
 * writes.
 */
export function* crashPoints(): Generator<number> {
  for (let n = 1 + turnOf(step); ; n += step) yield n;
}

/** Returns whether a request is a write. Events do not count, because a crash may lose them. */
export function isWrite({ method, path }: ProxiedRequest): boolean {
  return method !== "GET" && !path.includes("/events");
}

/** Provides a `CrashHouse` for the tests of a file. */
export function useCrashHouse(): CrashHouse {
  const crashes = new CrashHouse();
  beforeAll(() => crashes.open());
  // A failed test must not leave a fault or objects for the next test.
  beforeEach(async () => {
    crashes.bury();
    await crashes.sweep();
  });
  afterAll(() => crashes.close());
  return crashes;
}

export class CrashHouse {
  #house: OperatorHouse | undefined;
  #endPlay: () => Promise<void> = async () => undefined;
  /**
   * The name of the running operator. The proxy drops requests of all other operators, for example requests
   * that were in flight when an operator crashed.
   */
  #living: string | undefined;
  #lives = 0;
  /** Returns the fault for a request of the running operator. */
  rule: FaultProxy["rule"] = () => undefined;

  get house(): OperatorHouse {
    if (this.#house === undefined) throw new Error("call open() before the first use of house");
    return this.#house;
  }

  async open(): Promise<void> {
    this.#house = await OperatorHouse.open();
    await this.house.stopOperator();
    await this.house.putLicense(await this.house.issuer.issue());
    this.house.proxy.rule = (request) =>
      request.client === this.#living ? this.rule(request) : { kind: "drop", when: "before" };
    this.#endPlay = this.house.play();
  }

  async close(): Promise<void> {
    await this.#endPlay();
    await this.#house?.[Symbol.asyncDispose]();
  }

  /** Starts an operator. Its client sends each request once, without retries. */
  async life(): Promise<void> {
    this.#lives += 1;
    const life = `operator-${this.#lives}`;
    this.#living = life;
    const connection = this.house.proxy.connection();
    const credentials = async () => {
      if (this.#living !== life) throw new Error("this operator has crashed");
      const { headers, ...rest } = await connection.credentials();
      return { ...rest, headers: { ...headers, "x-test-client": life } };
    };
    const client = new ClusterClient({ ...connection, credentials }, { attempts: 1 });
    await this.house.startOperator({ client, tokenOverlapMs: overlapMs });
  }

  /** Crashes the running operator after its n-th write from now. */
  dieAfter(n: number): Death {
    const death: Death = { writes: 0, dead: false, last: "" };
    this.rule = (request) => {
      if (death.dead) return { kind: "drop", when: "before" };
      if (!isWrite(request)) return undefined;
      death.writes += 1;
      if (death.writes < n) return undefined;
      death.dead = true;
      death.last = `${request.method} ${request.path}`;
      return { kind: "drop", when: "after" };
    };
    return death;
  }

  bury(): void {
    this.#living = undefined;
    this.house.abandonOperators();
    this.rule = () => undefined;
  }

  family() {
    return childrenOf(this.house.admin, this.house.namespace, "demo");
  }

  async look(): Promise<Record<string, unknown>> {
    const owner = await this.house.get("TtsDeployment", "demo");
    return comparableObjects([...(owner ? [owner] : []), ...(await this.family())]);
  }

  async isSettled(): Promise<boolean> {
    const found = (await this.house.get("TtsDeployment", "demo")) as TtsDeployment | undefined;
    if (found === undefined) return false;
    const { metadata, status } = found;
    const says = (type: string) => status?.conditions.find((condition) => condition.type === type)?.status;
    return (
      status?.observedGeneration === metadata.generation &&
      says("Ready") === "True" &&
      says("Reconciling") === "False"
    );
  }

  /** Deletes the TtsDeployment and all its children, without the garbage collector. */
  async sweep(): Promise<void> {
    await this.house.stopOperator();
    await this.house.remove("TtsDeployment", "demo");
    const isGone = async () => {
      const remaining = await this.family();
      await Promise.all(remaining.map(({ kind, metadata }) => this.house.remove(kind, metadata.name)));
      return remaining.length === 0;
    };
    await this.house.until(isGone, "the namespace has no children of the TtsDeployment");
  }

  /** Resolves when the operator has crashed or has finished its work. */
  async fateOf(death: Death, isAtEnd: () => Promise<boolean>): Promise<Fate> {
    await this.house.until(
      async () => death.dead || (await isAtEnd()),
      "the operator has crashed or finished",
    );
    // After the end of its work, the operator must not crash any more.
    if (!death.dead) this.rule = () => undefined;
    return death.dead ? "died" : "survived";
  }

  /** Returns whether the garbage collector has deleted all children without an owner. */
  async #isCollected(): Promise<boolean> {
    const [owner, found] = await Promise.all([this.house.get("TtsDeployment", "demo"), this.family()]);
    const existing = new Set([owner, ...found].map((one) => one?.metadata.uid));
    return found.every(
      ({ metadata }) => metadata.ownerReferences?.every(({ uid }) => existing.has(uid)) ?? true,
    );
  }

  /** Waits for the final state of a run without crashes, and returns the objects. */
  async #theEnd(): Promise<Record<string, unknown>> {
    await this.house.until(() => this.isSettled(), "the TtsDeployment is ready");
    await this.house.until(() => this.#isCollected(), "the garbage collector has finished");
    // The steps of a token rotation depend on time.
    await this.house.advance(10 * overlapMs);
    return this.look();
  }

  async #reach(end: Record<string, unknown>, what: string): Promise<void> {
    let last: Record<string, unknown> = {};
    try {
      await this.house.until(async () => {
        if (!(await this.isSettled())) return false;
        last = await this.look();
        return JSON.stringify(last) === JSON.stringify(end);
      }, what);
    } catch (error) {
      expect(last, what).toEqual(end);
      throw error;
    }
  }

  /** Returns the requests of the running operator. */
  get requests(): readonly ProxiedRequest[] {
    return this.house.proxy.requests.filter(({ client }) => client === this.#living);
  }

  #removed(): Set<string> {
    const deletions = this.requests.filter(({ method }) => method === "DELETE");
    return new Set(deletions.map(({ path }) => path));
  }

  /**
   * Crashes the operator after writes that `act` causes. After each crash, the next operator must reach the
   * same final state as a run without crashes, and must delete no other objects.
   *
   * @param prepare creates the initial state
   */
  async comesToTheSameEnd(prepare: () => Promise<void>, act: () => Promise<void>): Promise<void> {
    const { house } = this;
    await prepare();
    await this.life();
    await act();
    const end = await this.#theEnd();
    const goal = JSON.stringify(end);
    const isAtEnd = async () => (await this.isSettled()) && JSON.stringify(await this.look()) === goal;
    const allowedDeletions = this.#removed();
    await this.sweep();
    for (const n of crashPoints()) {
      await prepare();
      const death = this.dieAfter(n);
      await this.life();
      await act();
      if ((await this.fateOf(death, isAtEnd)) === "survived") break;
      this.bury();
      await this.life();
      await this.#reach(end, `the final state after a crash at write ${n} (${death.last})`);
      expect(allowedDeletions).toEqual(new Set([...allowedDeletions, ...this.#removed()]));
      await this.sweep();
    }
    await house.advance(10 * overlapMs);
    expect(await this.look()).toEqual(end);
    await this.sweep();
  }
}

/** The kinds of the children of a TtsDeployment. */
const kinds = [
  "ServiceAccount",
  "Role",
  "RoleBinding",
  "ConfigMap",
  "Secret",
  "Service",
  "Deployment",
  "TtsModelPool",
  "Ingress",
  "NetworkPolicy",
  "PodDisruptionBudget",
  "HorizontalPodAutoscaler",
] as const;

async function childrenOf(
  admin: ClusterClient,
  namespace: string,
  deployment: string,
): Promise<KubernetesObject[]> {
  const labelSelector = `tts.svc.dev/deployment=${deployment}`;
  const lists = await Promise.all(kinds.map((kind) => admin.list(kind, { namespace, labelSelector })));
  return lists.flat();
}

/**
 * Returns the objects by `Kind/name`, without values that differ between runs, such as times, ids and tokens.
 */
function comparableObjects(objects: readonly KubernetesObject[]): Record<string, unknown> {
  const pairs = objects.map(
    (object) => [`${object.kind}/${object.metadata.name}`, comparable(object)] as const,
  );
  return Object.fromEntries(pairs.sort(([a], [b]) => a.localeCompare(b)));
}

function comparable({ metadata, ...rest }: KubernetesObject): unknown {
  const { labels, annotations, finalizers, ownerReferences, deletionTimestamp } = metadata;
  const owners = ownerReferences?.map(({ kind, name }) => `${kind}/${name}`);
  const meta = { labels, annotations, finalizers, owners, isGoing: deletionTimestamp !== undefined };
  const content = rest.kind === "Secret" ? { ...rest, data: tokenForm(rest.data) } : rest;
  return JSON.parse(
    JSON.stringify({ ...meta, ...content }, (key, value) => (variableFields.has(key) ? undefined : value)),
  );
}

const variableFields = new Set([
  "lastTransitionTime",
  "clusterIP",
  "clusterIPs",
  "nodePort",
  "healthCheckNodePort",
  "tts.svc.dev/token-changed-at",
  // The resource version depends on the number of status writes.
  "resourceVersion",
]);

/** Returns the number of accepted tokens, and the index of the token that API pods send. */
function tokenForm(data: unknown): unknown {
  const plain = (text = "") => Buffer.from(text, "base64").toString();
  const { token, accepted } = data as Record<string, string | undefined>;
  const list = plain(accepted).split("\n");
  return { accepted: list.length, sent: list.indexOf(plain(token)) };
}
