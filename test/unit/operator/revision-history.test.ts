import { describe, expect, it } from "vitest";
import { ApiError } from "../../../operator/cluster/api-error.ts";
import type { ClusterCache } from "../../../operator/cluster/cache.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import { modelPool, withDesiredSpec } from "../../../operator/desired/model-pool.ts";
import { RevisionHistory } from "../../../operator/reconcile/revision-history.ts";
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

/** Returns a history whose requests fail with this error. */
function refusedHistory(failure: Error): RevisionHistory {
  const client = { get: () => Promise.reject(failure) } as unknown as ClusterClient;
  const view = { get: () => live } as unknown as ClusterCache;
  return new RevisionHistory(client, view, new FakeClock());
}

describe("a history that the operator may not read", () => {
  const forbidden = new ApiError({ status: 403, reason: "Forbidden", message: "no right to get it." });

  it("keeps the settings of the pool, and reports the message of the API server", async () => {
    const { deployment: found, problem } = await refusedHistory(forbidden).withRollbacks(deployment);
    expect(found.spec.models).toMatchObject([{ name: "mist", image: "server:7" }]);
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
