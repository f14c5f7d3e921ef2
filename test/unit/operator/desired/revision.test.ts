import { describe, expect, it } from "vitest";
import { modelPool } from "../../../../operator/desired/model-pool.ts";
import { poolSettings, renderModelTemplate } from "../../../../operator/desired/pods/deployment.ts";
import { pinTemplate } from "../../../../operator/desired/pods/pinned-template.ts";
import {
  controllerRevision,
  modelOfPool,
  newRevision,
  parseRevision,
  sortedHistory,
} from "../../../../operator/desired/revision.ts";
import type { KubernetesObject } from "../../../../operator/facts/kubernetes-object.ts";
import { serverSettings, ttsDeployment, ttsModelPool } from "../../../support/operator/observed.ts";

const deployment = ttsDeployment({}, [
  {
    name: "mist",
    kind: "mist",
    replicas: 3,
    image: "server:7",
    podTemplate: { spec: { hostAliases: null, priority: null } },
    rollout: { rollbackTo: "0123456789" },
  },
]);
const [model = expect.unreachable("the model")] = deployment.spec.models;
const pool = ttsModelPool({ image: "server:7", podTemplate: JSON.stringify(model.podTemplate) });
const pin = pinTemplate(renderModelTemplate(pool, serverSettings.server));
const position = { number: 4, servedSince: "2026-01-01T00:00:00Z" };
const revision = newRevision(pool, model, pin, position);
const stored = controllerRevision(pool, revision);

describe("a revision", () => {
  it("is read as it was stored, with null values of podTemplate", () => {
    expect(parseRevision(pool, stored)).toEqual(revision);
    expect(revision.model).toMatchObject({ kind: "mist", image: "server:7" });
    expect(revision.model.podTemplate).toEqual({ spec: { hostAliases: null, priority: null } });
    for (const field of ["name", "replicas", "scaling", "rollout"])
      expect(revision.model).not.toHaveProperty(field);
  });

  it("gets defaults for fields that an earlier version of the operator did not have", () => {
    const earlier = { ...stored, data: { model: '{"kind":"mist"}', settings: "s" } };
    expect(parseRevision(pool, earlier)?.model).toMatchObject({ kind: "mist", maxConcurrentStreams: 16 });
  });

  it.each<[string, Partial<KubernetesObject>]>([
    ["of another owner", { metadata: { ...stored.metadata, ownerReferences: [] } }],
    ["under another name", { metadata: { ...stored.metadata, name: "demo-mist-ffffffffff" } }],
    ["without data", { data: undefined }],
    ["with an invalid model", { data: { model: '{"kind":"other"}', settings: "s" } }],
    ["with a model that is no JSON", { data: { model: "{", settings: "s" } }],
    [
      "with a pod template that was changed by hand",
      {
        metadata: {
          ...stored.metadata,
          annotations: { ...stored.metadata.annotations, "tts.svc.dev/pod-template": "{}" },
        },
      },
    ],
  ])("%s is ignored", (_what, change) => {
    expect(parseRevision(pool, { ...stored, ...change })).toBeUndefined();
  });

  it("is sorted by its number, the newest first", () => {
    const numbers = [2, 11, 1].map((revision) => ({ ...stored, revision }));
    expect(sortedHistory(pool, numbers).map(({ number }) => number)).toEqual([11, 2, 1]);
  });
});

describe("the settings of a pool", () => {
  it("as the settings of a model result in the same pool", () => {
    const spec = { ...modelOfPool(pool), name: "mist" };
    const rendered = modelPool(ttsDeployment({}, [spec]), { ...model, ...modelOfPool(pool) }, true);
    const again = ttsModelPool({ ...rendered.spec });
    expect(poolSettings(again)).toBe(poolSettings(pool));
  });
});
