import { Compile } from "typebox/compile";
import { Value } from "typebox/value";
import { describe, expect, it } from "vitest";
import {
  type CacheResult,
  readCacheProgress,
  readCacheResult,
} from "../../../../config/contract/model-cache.ts";
import { modelCacheFinalizer } from "../../../../config/contract/names.ts";
import {
  TtsModelCacheSpecSchema,
  type TtsModelCacheStatus,
  TtsModelCacheStatusSchema,
} from "../../../../crds/tts-model-cache.ts";
import { namedModelCache } from "../../../../operator/caches/named-cache.ts";
import { type ObservedModelCache, planModelCache } from "../../../../operator/caches/plan.ts";
import { contentsOf, fetchJob } from "../../../../operator/desired/fetch-job.ts";
import { mountedClaim } from "../../../../operator/desired/pods/model-cache.ts";
import type { PinnedTemplate } from "../../../../operator/desired/pods/pinned-template.ts";
import type { Claim, Deployment, Job, Pod, TtsModelCache } from "../../../../operator/facts/observed.ts";
import { planRollout } from "../../../../operator/rollout/plan.ts";
import { modelCacheStatus } from "../../../../operator/status/model-cache.ts";
import {
  granted,
  now,
  plannedDeployment,
  running,
  ttsModelPool,
} from "../../../support/operator/observed.ts";

type Json = { [name: string]: unknown };

const server = { image: "server:1", pullPolicy: undefined };
const at = (seconds: number) => new Date(now + seconds * 1000).toISOString().replace(".000", "");

function cacheOf(spec: Json = {}, status?: Partial<TtsModelCacheStatus>, metadata: Json = {}): TtsModelCache {
  const partial = {
    sources: [{ url: "https://h/a.bin" }],
    storage: { claim: { size: "1Gi" } },
    ...spec,
  };
  const complete = Value.Default(TtsModelCacheSpecSchema, partial);
  if (!Compile(TtsModelCacheSpecSchema).Check(complete)) throw new Error("invalid spec");
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsModelCache",
    metadata: { name: "voices", namespace: "ns", uid: "uid", generation: 1, ...metadata },
    spec: complete,
    ...(status && { status: status as TtsModelCacheStatus }),
  };
}

const claim: Claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "voices-models", namespace: "ns", uid: "claim" },
  status: { phase: "Bound", accessModes: ["ReadWriteOnce"] },
};

function jobOf(cache: TtsModelCache, attempt = 0, condition?: "Complete" | "Failed"): Job {
  const job = fetchJob(cache, { attempt, claimUid: "claim", beside: undefined }, server);
  const conditions = condition ? [{ type: condition, status: "True", message: "BackoffLimitExceeded" }] : [];
  return { ...job, metadata: { ...job.metadata, uid: `job-${attempt}` }, status: { conditions } } as Job;
}

function podOf(job: Job, status: Json, spec: Json = {}): Pod {
  const ownerReferences = [{ apiVersion: "batch/v1", kind: "Job", name: "j", uid: job.metadata.uid ?? "" }];
  const metadata = { name: "pod", namespace: "ns", ownerReferences };
  return { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [], ...spec }, status } as Pod;
}

function ended(job: Job, message: string, exitCode = 1, reason?: string): Pod {
  const state = { terminated: { exitCode, message, finishedAt: at(-3), ...(reason && { reason }) } };
  const fetch = { name: "fetch", image: "", imageID: "", ready: false, restartCount: 0, state };
  return podOf(job, { phase: "Failed", containerStatuses: [fetch] });
}

function observed(cache: TtsModelCache, more: Partial<ObservedModelCache> = {}): ObservedModelCache {
  const none = { jobs: [], pods: [], users: [], mounting: [], progress: undefined, classProblem: undefined };
  return { now, cache, claim, ...none, ...more };
}

const fetchedOf = (cache: TtsModelCache, more: Json = {}) => ({
  contents: contentsOf(cache.spec),
  claim: "claim",
  time: at(-60),
  files: 1,
  bytes: 10,
  ...more,
});
const failureOf = (more: Json = {}) => ({
  generation: 1,
  attempts: 1,
  job: "voices-fetch-1-0",
  reason: "FetchFailed",
  message: "no route",
  time: at(-5),
  nextAttempt: at(5),
  ...more,
});

describe("the plan of a TtsModelCache", () => {
  it("starts a Job when the claim exists", () => {
    const cache = cacheOf();
    expect(planModelCache(observed(cache, { claim: undefined }))).toMatchObject({
      start: undefined,
      state: { kind: "pending", problem: { reason: "ClaimPending" } },
    });
    expect(planModelCache(observed(cache))).toMatchObject({ start: { attempt: 0, claimUid: "claim" } });
  });

  it("is ready after the fetch of the same contents into the same claim, and removes every Job", () => {
    const cache = cacheOf({}, { fetched: fetchedOf(cacheOf()) });
    const job = jobOf(cache, 0, "Complete");
    const plan = planModelCache(observed(cache, { jobs: [job] }));
    expect(plan).toMatchObject({ state: { kind: "ready" }, start: undefined, surplus: [job] });
  });

  it.each<[string, TtsModelCache]>([
    ["the contents changed", cacheOf({ preset: "kokoro-82m" }, { fetched: fetchedOf(cacheOf()) })],
    ["the claim was replaced", cacheOf({}, { fetched: fetchedOf(cacheOf(), { claim: "earlier" }) })],
  ])("fetches again if %s", (_what, cache) => {
    expect(planModelCache(observed(cache)).start).toBeDefined();
  });

  it("keeps the record of the earlier contents while others are fetched, and forgets a lost claim", () => {
    const fetched = fetchedOf(cacheOf());
    const changed = cacheOf({ preset: "kokoro-82m" }, { fetched });
    expect(planModelCache(observed(changed)).fetched).toEqual(fetched);
    expect(planModelCache(observed(cacheOf({}, { fetched }), { claim: undefined })).fetched).toBeUndefined();
  });

  it("records the result of a complete Job, with the time at which its container ended", () => {
    const cache = cacheOf();
    const job = jobOf(cache, 0, "Complete");
    const result: CacheResult = { outcome: "filled", files: 2, bytes: 7, fetched: 1, removed: 0 };
    const pods = [ended(job, JSON.stringify(result), 0)];
    expect(planModelCache(observed(cache, { jobs: [job], pods })).fetched).toEqual({
      ...fetchedOf(cache),
      time: at(-3),
      files: 2,
      bytes: 7,
    });
  });

  it.each(["Complete", "Failed"] as const)(
    "waits for the end of the container of a Job that is %s",
    (end) => {
      const cache = cacheOf();
      const job = jobOf(cache, 0, end);
      const pods = [podOf(job, { phase: "Running" })];
      expect(planModelCache(observed(cache, { jobs: [job], pods }))).toMatchObject({
        state: { kind: "fetching" },
        start: undefined,
        surplus: [],
        fetched: undefined,
        failure: undefined,
      });
    },
  );

  it("does not wait for a pod that is being deleted, because its node may be lost", () => {
    const cache = cacheOf();
    const job = jobOf(cache, 0, "Failed");
    const pod = podOf(job, { phase: "Running" });
    const deleted = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: at(-1) } };
    const plan = planModelCache(observed(cache, { jobs: [job], pods: [deleted] }));
    expect(plan.failure?.reason).toBe("FetchInterrupted");
  });

  it("removes a Job of other contents, and does not start a Job of the same name before it is deleted", () => {
    const job = jobOf(cacheOf({ preset: "kokoro-82m" }));
    const plan = planModelCache(observed(cacheOf(), { jobs: [job] }));
    expect(plan).toMatchObject({ surplus: [job], start: undefined });
    const next = cacheOf({}, undefined, { generation: 2 });
    expect(planModelCache(observed(next, { jobs: [job] })).start).toMatchObject({ attempt: 0 });
  });

  it("counts a failed Job once, and waits longer after each failure", () => {
    const cache = cacheOf();
    const job = jobOf(cache, 0, "Failed");
    const failed = JSON.stringify({ outcome: "failed", reason: "FetchFailed", message: "no route" });
    const first = planModelCache(observed(cache, { jobs: [job], pods: [ended(job, failed)] }));
    expect(first.failure).toEqual(failureOf({ time: at(0), nextAttempt: at(10) }));
    expect(first).toMatchObject({ state: { kind: "failed" }, surplus: [job], changesAt: now + 10_000 });
    const again = cacheOf({}, { failure: failureOf({ time: at(0), nextAttempt: at(10) }) });
    expect(planModelCache(observed(again, { jobs: [job] })).failure).toEqual(first.failure);
    const waits = [1, 2, 3, 6, 7, 40].map((attempts) => {
      const known = cacheOf({}, { failure: failureOf({ attempts, nextAttempt: at(-1) }) });
      const other = jobOf(known, attempts, "Failed");
      const { failure } = planModelCache(observed(known, { jobs: [other], pods: [ended(other, failed)] }));
      return (Date.parse(failure?.nextAttempt ?? "") - now) / 1000;
    });
    expect(waits).toEqual([20, 40, 80, 600, 600, 600]);
  });

  it.each([
    ["DigestMismatch", "stalled", 3600],
    ["PresetUnknown", "stalled", 3600],
    ["DiskFull", "stalled", 10],
    ["FetchFailed", "failed", 10],
    ["FetchInterrupted", "failed", 10],
  ])("after %s is %s, and tries again after %d seconds", (reason, kind, seconds) => {
    const cache = cacheOf();
    const job = jobOf(cache, 0, "Failed");
    const message = JSON.stringify({ outcome: "failed", reason, message: "why" });
    const plan = planModelCache(observed(cache, { jobs: [job], pods: [ended(job, message)] }));
    expect(plan.state).toMatchObject({ kind, problem: { reason } });
    expect(plan.failure?.nextAttempt).toBe(at(seconds));
  });

  it.each([
    ["a pod without a result", (job: Job) => [ended(job, "Error: x\n  at y", 3)], /exit code 3\. at y/],
    ["too much memory", (job: Job) => [ended(job, "", 137, "OOMKilled")], /too much memory/],
    ["a lost pod", () => [], /its node was restarted/],
    ["a restarted node", (job: Job) => [ended(job, "{}", 255, "Unknown")], /its node was restarted/],
    [
      "a container without a state",
      (job: Job) => [ended(job, "", 137, "ContainerStatusUnknown")],
      /its node was restarted/,
    ],
  ])("explains %s", (_what, pods, message) => {
    const cache = cacheOf();
    const job = jobOf(cache, 0, "Failed");
    expect(planModelCache(observed(cache, { jobs: [job], pods: pods(job) })).failure?.message).toMatch(
      message,
    );
  });

  it("forgets the failures of an earlier generation", () => {
    const cache = cacheOf({}, { failure: failureOf() }, { generation: 2 });
    expect(planModelCache(observed(cache))).toMatchObject({ start: { attempt: 0 }, failure: undefined });
  });

  it("starts nothing while the cache is being deleted, and while its class forbids the sources", () => {
    const deleted = cacheOf({}, undefined, { deletionTimestamp: at(-1) });
    expect(planModelCache(observed(deleted)).start).toBeUndefined();
    const classProblem = { reason: "ClassLimitExceeded", message: "no", stalled: true } as const;
    const plan = planModelCache(observed(cacheOf(), { classProblem }));
    expect(plan).toMatchObject({ start: undefined, state: { kind: "stalled", problem: { message: "no" } } });
  });

  it.each<[string, Claim | undefined, string]>([
    ["was deleted", undefined, "ClaimNotFound"],
    [
      "is being deleted",
      { ...claim, metadata: { ...claim.metadata, deletionTimestamp: at(0) } },
      "ClaimLost",
    ],
    ["has lost its volume", { ...claim, status: { phase: "Lost" } }, "ClaimLost"],
  ])("waits for a user if the claim %s", (_what, found, reason) => {
    const cache = cacheOf({ storage: { existingClaim: { claimName: "mine" } } });
    const plan = planModelCache(observed(cache, { claim: found }));
    expect(plan).toMatchObject({ start: undefined, state: { kind: "stalled", problem: { reason } } });
  });

  it("runs the Job beside the pods that mount a claim of one node, with their tolerations", () => {
    const cache = cacheOf({ nodeSelector: { disk: "fast" } });
    const tolerations = [{ key: "nvidia.com/gpu", operator: "Exists" }];
    const mounting = [podOf(jobOf(cache), { phase: "Running" }, { nodeName: "one", tolerations })];
    const affinityOf = (modes: string[]) => {
      const shared = { ...claim, status: { phase: "Bound", accessModes: modes } };
      const { start } = planModelCache(observed(cache, { claim: shared, mounting }));
      if (start === undefined) throw new Error("no Job");
      const {
        affinity,
        nodeSelector,
        tolerations: found,
      } = fetchJob(cache, start, server).spec.template.spec ?? {};
      return [JSON.stringify(affinity ?? {}).includes('["one"]'), nodeSelector, found];
    };
    expect(affinityOf(["ReadWriteOnce"])).toEqual([true, undefined, tolerations]);
    expect(affinityOf(["ReadWriteMany"])).toEqual([false, { disk: "fast" }, undefined]);
  });

  it("passes the UID of the cache, because several caches can share a claim", () => {
    const { spec } = fetchJob(cacheOf(), { attempt: 0, claimUid: "claim", beside: undefined }, server);
    const words = spec.template.spec?.containers[0]?.args ?? [];
    expect(JSON.parse(words[words.indexOf("--plan") + 1] ?? "")).toMatchObject({ owner: "uid" });
  });
});

describe("the status of a TtsModelCache", () => {
  const statusSchema = Compile(TtsModelCacheStatusSchema);

  it.each<[string, Partial<ObservedModelCache>, Json]>([
    ["without a claim", { claim: undefined }, { phase: "Pending" }],
    [
      "while files are fetched",
      {
        jobs: [jobOf(cacheOf())],
        pods: [podOf(jobOf(cacheOf()), { phase: "Running" })],
        progress: { files: 0, totalFiles: 1, bytes: 1_500, bytesPerSecond: 5 },
      },
      { phase: "Fetching", summary: { files: "0/1", bytes: "1.5kB" } },
    ],
    [
      "while the progress is not known",
      { jobs: [jobOf(cacheOf())], pods: [podOf(jobOf(cacheOf()), { phase: "Running" })] },
      { phase: "Fetching", summary: { files: "", bytes: "" } },
    ],
  ])("%s matches the schema", (_what, more, expected) => {
    const found = observed(cacheOf(), more);
    const status = modelCacheStatus(found, planModelCache(found), undefined);
    expect([...statusSchema.Errors(status)]).toEqual([]);
    expect(status).toMatchObject(expected);
  });
});

describe("a pool that names a TtsModelCache", () => {
  const pool = ttsModelPool({ cache: { name: "voices" } });
  const ready = { type: "Ready", status: "True", reason: "Fetched", message: "" };
  const usable = { claimName: "voices-models", problem: undefined };
  const unusable = namedModelCache("voices", undefined);
  const plan = (
    modelCache: typeof usable | typeof unusable,
    deployment: Deployment | undefined,
    spec = pool,
    rollback?: PinnedTemplate,
  ) => {
    const observedPool = { pool: spec, workload: { deployment, pods: [] }, modelCache };
    const facts = { observed: observedPool, canary: undefined, routed: false, grant: granted, now };
    return planRollout({ ...facts, licensedCanary: 0, figures: undefined, rollback }, server);
  };

  /** Returns the live Deployment of the pool, which mounts the claim. */
  function plannedLive() {
    const fresh = plan(usable, running(0)).stable;
    const annotations = {
      "tts.svc.dev/spec-hash": fresh?.specHash ?? "",
      "tts.svc.dev/revision": fresh?.revision ?? "",
      "tts.svc.dev/pod-template": JSON.stringify(fresh?.template),
    };
    const live = running(1);
    return { ...live, metadata: { ...live.metadata, annotations } };
  }

  it.each<[string, TtsModelCache | undefined, string | undefined]>([
    ["does not exist", undefined, undefined],
    ["was not filled yet", cacheOf({}, { conditions: [] }, { finalizers: [modelCacheFinalizer] }), undefined],
    [
      "may be deleted, because it has no finalizer yet",
      cacheOf({}, { fetched: fetchedOf(cacheOf()), claimName: "c", conditions: [] }),
      undefined,
    ],
    [
      "was filled",
      cacheOf(
        {},
        { fetched: fetchedOf(cacheOf()), claimName: "c", conditions: [ready as never] },
        {
          finalizers: [modelCacheFinalizer],
        },
      ),
      "c",
    ],
  ])("may mount its claim only if the cache was filled: it %s", (_what, cache, claimName) => {
    const named = namedModelCache("voices", cache);
    expect(named.claimName).toBe(claimName);
    expect(named.problem === undefined).toBe(claimName !== undefined);
  });

  it("starts no pods before the cache is filled", () => {
    expect(plannedDeployment(pool, undefined, granted, server)).toBeUndefined();
    const held = plan(unusable, undefined);
    expect(held).toMatchObject({ stable: undefined, waits: { problem: { reason: "ModelCacheNotFound" } } });
  });

  it("keeps its pods when the cache disappears, without a reason to wait", () => {
    const live = plannedLive();
    const kept = plan(unusable, live);
    expect(kept.stable?.revision).toBe(plan(usable, live).stable?.revision);
    expect(kept.waits).toBeUndefined();
    expect(kept.outdated).toBe(false);
  });

  it("holds new settings until the cache is ready, and replaces the pods if the claim changes", () => {
    const live = plannedLive();
    const changed = ttsModelPool({ cache: { name: "voices" }, env: [{ name: "A", value: "b" }] });
    const held = plan(unusable, live, changed);
    expect(held.stable?.revision).toBe(plan(usable, live).stable?.revision);
    expect(held.waits?.problem.message).toMatch(/^The new settings roll out when the TtsModelCache is ready/);
    expect(plan({ ...usable, claimName: "other" }, live).stable?.revision).not.toBe(held.stable?.revision);
  });

  it("returns to a revision that mounts the same claim when the cache is ready", () => {
    const earlier = ttsModelPool({ cache: { name: "voices" }, env: [{ name: "A", value: "b" }] });
    const rollback = plan(usable, undefined, earlier).stable;
    const live = plannedLive();
    const held = plan(unusable, live, earlier, rollback);
    expect(held.stable?.revision).toBe(plan(usable, live).stable?.revision);
    expect(held.waits?.problem.reason).toBe("ModelCacheNotFound");
    const returned = plan(usable, live, earlier, rollback);
    expect(returned.waits).toBeUndefined();
    expect(returned.stable).toEqual(rollback);
  });

  it("waits for the cache before it returns to a revision, and never mounts a claim of another cache", () => {
    const other = ttsModelPool({ cache: { name: "other" } });
    const rollback = plan({ ...usable, claimName: "deleted" }, undefined, other).stable;
    const live = plannedLive();
    const held = plan(unusable, live, other, rollback);
    expect(held.stable?.revision).toBe(plan(usable, live).stable?.revision);
    expect(held.waits?.problem.reason).toBe("ModelCacheNotFound");
    const returned = plan({ ...usable, claimName: "new" }, live, other, rollback);
    expect(returned.stable && mountedClaim(returned.stable.template)).toBe("new");
    expect(returned.waits).toBeUndefined();
  });
});

describe("the contract of the pod", () => {
  it.each([undefined, "", "log line", "{}", '{"outcome":"failed","reason":"Other","message":"x"}', "null"])(
    "ignores a termination message that is not a result: %s",
    (text) => expect(readCacheResult(text)).toBeUndefined(),
  );

  it.each(["", "[]", '{"files":-1,"totalFiles":1,"bytes":1,"bytesPerSecond":0}', '{"files":"1"}'])(
    "ignores progress that is invalid: %s",
    (text) => expect(readCacheProgress(text)).toBeUndefined(),
  );
});
