import { Value } from "typebox/value";
import { describe, expect, it } from "vitest";
import { defaultClassAnnotation } from "../../../config/contract/names.ts";
import { TtsClassSpecSchema } from "../../../crds/tts-class.ts";
import { ClassAllocations } from "../../../operator/classes/class-allocations.ts";
import { noUse } from "../../../operator/classes/class-use.ts";
import { resolveClass } from "../../../operator/classes/resolve-class.ts";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import type { ClusterCache } from "../../../operator/cluster/cache.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import { modelPool, withDesiredSpec } from "../../../operator/desired/model-pool.ts";
import type { TtsClass } from "../../../operator/facts/observed.ts";
import { applyClassOf } from "../../../operator/reconcile/class-of.ts";
import { RevisionHistory, withKeptSettings } from "../../../operator/reconcile/revision-history.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { ttsDeployment, ttsModelPool } from "../../support/operator/observed.ts";

const before = ttsDeployment({}, [{ name: "mist", kind: "mist", image: "server:7" }]);
const [model = expect.unreachable("the model")] = before.spec.models;
const { metadata } = modelPool(before, model, true);
const base = ttsModelPool();
const live = withDesiredSpec(before, { ...base, metadata: { ...base.metadata, ...metadata } });
const deployment = ttsDeployment({}, [
  { name: "mist", kind: "mist", image: "server:8", rollout: { rollbackTo: "0123456789" } },
]);
const pool = withDesiredSpec(deployment, live);

function historyOf(get: () => Promise<undefined>, found = live): RevisionHistory {
  const client = { get } as unknown as ClusterClient;
  const view = { get: () => found } as unknown as ClusterCache;
  return new RevisionHistory(client, view, new FakeClock());
}

/** Returns a history whose requests fail with this error. */
const refusedHistory = (failure: Error) => historyOf(() => Promise.reject(failure));

const devices = (count: number) => ({ resourceName: "nvidia.com/gpu", count });

describe("a revision that does not exist, of a model under a class", () => {
  const spec = Value.Default(TtsClassSpecSchema, {
    defaults: { images: { mist: "class.example/mist" } },
    acceleratorProfiles: [{ name: "l4", accelerator: { nodeSelector: { gpu: "l4" } } }],
    limits: { allowedImages: ["own.example"], accelerators: "Profiles" },
  }) as TtsClass["spec"];
  const only = {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsClass",
    metadata: { name: "c" },
    spec,
  } as const;
  const view = { isNamespaced: false, knowsAll: () => true, group: () => [only], ids: () => [] };
  const resolve = (rolledBack: Parameters<typeof applyClassOf>[1]) =>
    applyClassOf(
      { view: view as unknown as ClusterCache, classes: new ClassAllocations(), settings: {} },
      rolledBack,
    );
  const written = (more: object) => {
    const own = { name: "mist", kind: "mist", acceleratorProfile: "l4", ...more };
    return ttsDeployment({ className: "c", api: { image: "own.example/api" } }, [own]);
  };
  const accepted = resolve({ deployment: written({}), kept: new Map(), problem: undefined }).deployment;
  const running = withDesiredSpec(accepted, live);
  const rollback = { maxConcurrentStreams: 3, rollout: { rollbackTo: "0123456789" } };

  it("keeps the settings of the pool, which the limits of the class do not apply to", async () => {
    const history = historyOf(() => Promise.resolve(undefined), running);
    const found = await history.withRollbacks(written(rollback));
    expect(found.problem?.reason).toBe("RevisionNotFound");
    const { decision, deployment: kept, record } = resolve(found);
    expect(decision).toMatchObject({ accepted: true });
    const [was = expect.unreachable("the model")] = accepted.spec.models;
    const streams = was.maxConcurrentStreams;
    const image = "class.example/mist";
    expect(kept.spec.models).toMatchObject([
      { image, accelerator: was.accelerator, rollout: rollback.rollout },
    ]);
    expect(kept.spec.models[0]?.maxConcurrentStreams).toBe(streams);
    expect(JSON.parse(record?.spec ?? "")).toEqual(kept.spec);
  });

  it("counts the devices of these settings towards the sums of the class", async () => {
    const pool = withDesiredSpec(
      ttsDeployment({}, [{ name: "mist", kind: "mist", accelerator: devices(8) }]),
      live,
    );
    const found = await historyOf(() => Promise.resolve(undefined), pool).withRollbacks(
      ttsDeployment({}, [{ name: "mist", kind: "mist", replicas: 8, accelerator: devices(1), ...rollback }]),
    );
    const limits = { maxGpusPerNamespace: 8 };
    const limited = { ...only, spec: Value.Default(TtsClassSpecSchema, { limits }) as TtsClass["spec"] };
    const { decision } = resolveClass(found.deployment, {
      classes: [{ ...limited, metadata: { name: "c", annotations: { [defaultClassAnnotation]: "true" } } }],
      isNamespaced: false,
      elsewhere: () => noUse,
      adjust: (spec) => withKeptSettings(spec, found.kept),
    });
    expect(decision).toMatchObject({ accepted: false, reason: "ClassLimitExceeded" });
    expect(decision?.message).toContain("requests 64 devices, but the class allows 8 devices");
  });
});

describe("a history that the operator may not read", () => {
  const forbidden = new ApiError({ status: 403, reason: "Forbidden", message: "no right to get it." });

  it("keeps the settings of the pool, and reports the message of the API server", async () => {
    const { deployment: found, kept, problem } = await refusedHistory(forbidden).withRollbacks(deployment);
    expect(withKeptSettings(found.spec, kept).models).toMatchObject([{ name: "mist", image: "server:7" }]);
    expect(problem).toMatchObject({ reason: "HistoryUnreadable", stalled: true });
    expect(problem?.message).toContain("rollbackTo names: no right to get it. The pods keep their settings.");
  });

  it("has no template to which a pool returns", async () => {
    expect(await refusedHistory(forbidden).templateOf(pool)).toBeUndefined();
  });
});

it.each([
  ["an overloaded API server", new ApiError({ status: 503, reason: "ServiceUnavailable", message: "busy" })],
  ["a failed connection", new Error("ECONNRESET")],
])("a rollback is tried again after %s", async (_what, failure) => {
  const history = refusedHistory(failure);
  await expect(history.withRollbacks(deployment)).rejects.toBe(failure);
  await expect(history.templateOf(pool)).rejects.toBe(failure);
});
