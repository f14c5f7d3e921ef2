import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import type { TtsDeployment } from "../../../operator/observed.ts";
import { childrenOf, portraits } from "../../support/family.ts";
import type { ProxiedRequest } from "../../support/fault-proxy.ts";
import { kubectlOrThrow } from "../../support/kubectl.ts";
import { OperatorHouse } from "../../support/operator-house.ts";

/**
 * An operator that stops dead right after its n-th write, for every n: the write is carried out, its answer is lost, and nothing more
 * is heard of that process. `make test-operator-faults` tries every n, the suite every eleventh.
 */

const step = Number(process.env.CRASH_STEP ?? 11);
const overlapMs = 100;

let house: OperatorHouse;
let endPlay: () => Promise<void>;

beforeAll(async () => {
  house = await OperatorHouse.open();
  await house.stopOperator();
  await house.putLicense(await house.issuer.issue());
  endPlay = house.play();
});

/** A test that failed leaves neither a dead operator's rule nor its objects to the next. */
beforeEach(async () => {
  bury();
  await sweep();
});

afterAll(async () => {
  await endPlay();
  await house[Symbol.asyncDispose]();
});

/** Ends the life of the operator that was started last. */
let kill: () => void = () => undefined;

/** One operator's life; every call is tried once, and none leaves a dead one, whoever lives after it. */
async function life(): Promise<void> {
  let alive = true;
  kill = () => {
    alive = false;
  };
  const connection = house.proxy.connection();
  const credentials = () => {
    if (!alive) throw new Error("this operator is dead");
    return connection.credentials();
  };
  const client = new ClusterClient({ ...connection, credentials }, { attempts: 1 });
  await house.startOperator({ client, tokenOverlapMs: overlapMs });
}

/** Writes that count: an event is lost with the process that had it in mind. */
function isWrite({ method, path }: ProxiedRequest): boolean {
  return method !== "GET" && !path.includes("/events");
}

/** Kills the running operator after its n-th write from now. */
function dieAfter(n: number) {
  const facts = { writes: 0, dead: false, last: "" };
  house.proxy.rule = (request) => {
    if (facts.dead) return { kind: "drop", when: "before" };
    if (!isWrite(request)) return undefined;
    facts.writes += 1;
    if (facts.writes < n) return undefined;
    facts.dead = true;
    facts.last = `${request.method} ${request.path}`;
    return { kind: "drop", when: "after" };
  };
  return facts;
}

function bury(): void {
  kill();
  house.abandonOperators();
  house.proxy.rule = () => undefined;
}

async function look(): Promise<Record<string, unknown>> {
  const owner = await house.get("TtsDeployment", "demo");
  return portraits([...(owner ? [owner] : []), ...(await family())]);
}

const family = () => childrenOf(house.admin, house.namespace, "demo");

async function isSettled(): Promise<boolean> {
  const found = (await house.get("TtsDeployment", "demo")) as TtsDeployment | undefined;
  if (found === undefined) return false;
  const { metadata, status } = found;
  const says = (type: string) => status?.conditions.find((condition) => condition.type === type)?.status;
  return (
    status?.observedGeneration === metadata.generation &&
    says("Ready") === "True" &&
    says("Reconciling") === "False"
  );
}

/** Without waiting for anybody to collect them. */
async function sweep(): Promise<void> {
  await house.stopOperator();
  await house.remove("TtsDeployment", "demo");
  const isGone = async () => {
    const left = await family();
    await Promise.all(left.map(({ kind, metadata }) => house.remove(kind, metadata.name)));
    return left.length === 0;
  };
  await house.until(isGone, "an empty namespace");
}

/** Nothing is left to the garbage collector. */
async function isCollected(): Promise<boolean> {
  const [owner, found] = await Promise.all([house.get("TtsDeployment", "demo"), family()]);
  const standing = new Set([owner, ...found].map((one) => one?.metadata.uid));
  return found.every(
    ({ metadata }) => metadata.ownerReferences?.every(({ uid }) => standing.has(uid)) ?? true,
  );
}

/** The end that an uninterrupted run comes to: what is there once nothing more is written or collected. */
async function theEnd(): Promise<Record<string, unknown>> {
  await house.until(isSettled, "Ready");
  await house.until(isCollected, "what the garbage collector takes");
  await house.settled();
  return look();
}

async function reach(end: Record<string, unknown>, what: string): Promise<void> {
  let last: Record<string, unknown> = {};
  try {
    await house.until(async () => {
      if (!(await isSettled())) return false;
      last = await look();
      return JSON.stringify(last) === JSON.stringify(end);
    }, what);
  } catch (error) {
    expect(last, what).toEqual(end);
    throw error;
  }
}

const before = {
  spec: {
    networkPolicy: { enabled: true },
    api: { replicas: 2, route: { hostnames: ["tts.example.com"], ingress: {} } },
  },
  models: [
    { name: "mist", kind: "mist", replicas: 2 },
    { name: "old", kind: "mist" },
  ],
};

/** Everything at once: a rollout, a pool that goes, one that comes, replicas handed over, optional children taken back, a new token. */
const after = {
  spec: { api: { replicas: 3 } },
  models: [
    { name: "mist", kind: "mist", maxConcurrentStreams: 5 },
    { name: "new", kind: "arcana", replicas: 1 },
  ],
};

async function create(): Promise<void> {
  await house.putDeployment(before.spec, before.models);
}

async function update(): Promise<void> {
  await house.putDeployment(after.spec, after.models);
  const order = [
    "annotate",
    "-n",
    house.namespace,
    "ttsd/demo",
    "--overwrite",
    "tts.svc.dev/rotate-token=now",
  ];
  await kubectlOrThrow(inject("controlPlane"), order);
}

interface Story {
  /** What stands before it. */
  readonly prepare: () => Promise<void>;
  readonly act: () => Promise<void>;
}

const stories: Record<string, Story> = {
  create: { prepare: async () => undefined, act: create },
  update: {
    prepare: async () => {
      await life();
      await create();
      await house.until(isSettled, "the state before");
      await house.stopOperator();
    },
    act: update,
  },
};

/** Resolves when the operator has died, or else when it came to the end. */
async function fateOf(facts: { dead: boolean }, end: Record<string, unknown>): Promise<"died" | "survived"> {
  const goal = JSON.stringify(end);
  await house.until(
    async () => facts.dead || ((await isSettled()) && JSON.stringify(await look()) === goal),
    "death, or the end",
  );
  return outcome(facts);
}

/** Who came to the end unharmed is not harmed any more. */
function outcome(facts: { dead: boolean }): "died" | "survived" {
  if (!facts.dead) house.proxy.rule = () => undefined;
  return facts.dead ? "died" : "survived";
}

const removed = () =>
  new Set(house.proxy.requests.filter(({ method }) => method === "DELETE").map(({ path }) => path));

describe.each(Object.entries(stories))("an operator that dies in %s", (_name, { prepare, act }) => {
  it("after any of its writes is followed by one that comes to the same end, and deletes nothing that serves", async () => {
    await prepare();
    house.proxy.requests.length = 0;
    await life();
    await act();
    const end = await theEnd();
    const mayGo = removed();
    await sweep();
    for (let n = 1; ; n += step) {
      await prepare();
      house.proxy.requests.length = 0;
      const facts = dieAfter(n);
      await life();
      await act();
      if ((await fateOf(facts, end)) === "survived") break;
      bury();
      await life();
      await reach(end, `the end, after a crash behind write ${n} (${facts.last})`);
      expect(mayGo).toEqual(new Set([...mayGo, ...removed()]));
      await sweep();
    }
    await house.settled();
    expect(await look()).toEqual(end);
    await sweep();
  }, 1_200_000);
});

/** The garbage collector's work: it looks for new kinds every 30 seconds. */
async function allIsGone(): Promise<void> {
  const isGone = async () =>
    (await house.get("TtsDeployment", "demo")) === undefined && (await family()).length === 0;
  await house.until(isGone, "an empty namespace");
}

/** Writes that a create takes: after more of them there is nothing to interrupt. */
async function interruptedCreate(n: number): Promise<"died" | "survived"> {
  const facts = dieAfter(n);
  await life();
  await create();
  await house.until(async () => facts.dead || (await isSettled()), "death, or the end");
  return outcome(facts);
}

describe("a TtsDeployment that is deleted", () => {
  it("while the operator that was making it is dead goes with all it had; the next operator writes nothing for it", async () => {
    for (let n = 1; (await interruptedCreate(n)) === "died"; n += step) {
      bury();
      const ref = { apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsDeployment", name: "demo" };
      const propagation = n % 2 === 0 ? "Background" : "Foreground";
      await house.admin.remove({ ...ref, namespace: house.namespace }, { propagation });
      house.proxy.requests.length = 0;
      await life();
      await allIsGone();
      expect(house.proxy.requests.filter(isWrite)).toEqual([]);
      await house.stopOperator();
    }
    await sweep();
  }, 1_200_000);

  it("while it is made leaves nothing behind, at whatever write that happens", async () => {
    for (let n = 1, wasMade = false; !wasMade; n += step) {
      const { promise: removal, resolve: removed } = Promise.withResolvers<void>();
      let writes = 0;
      house.proxy.rule = (request) => {
        if (isWrite(request) && ++writes === n)
          void house.remove("TtsDeployment", "demo").then(() => removed());
        return undefined;
      };
      await life();
      await create();
      await house.until(async () => writes >= n || (await isSettled()), "the deletion, or the end");
      wasMade = writes < n;
      if (wasMade) await house.remove("TtsDeployment", "demo");
      else await removal;
      await allIsGone();
      bury();
    }
  }, 1_200_000);
});
