import { Value } from "typebox/value";
import { describe, expect, it } from "vitest";
import { defaultClassAnnotation } from "../../../../config/contract/names.ts";
import { TtsClassSpecSchema } from "../../../../crds/tts-class.ts";
import { TtsModelCacheSpecSchema } from "../../../../crds/tts-model-cache.ts";
import { type CacheClasses, cacheProblem } from "../../../../operator/classes/cache-limits.ts";
import { fetchJob } from "../../../../operator/desired/fetch-job.ts";
import type { TtsClass, TtsModelCache } from "../../../../operator/facts/observed.ts";

type Json = { [name: string]: unknown };

function cacheOf(spec: Json): TtsModelCache {
  const sources = [{ url: "https://other.example/a.onnx" }];
  const partial = { sources, storage: { claim: { size: "1Gi" } }, ...spec };
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsModelCache",
    metadata: { name: "voices", namespace: "ns", uid: "uid", generation: 1 },
    spec: Value.Default(TtsModelCacheSpecSchema, partial) as TtsModelCache["spec"],
  };
}

/** Returns the class `c`, which does not allow the sources of the cache. */
function strictClass(annotations: Record<string, string> = {}): TtsClass {
  const spec = { limits: { allowedModelSources: ["hf://allowed/"] } };
  return {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsClass",
    metadata: { name: "c", annotations },
    spec: Value.Default(TtsClassSpecSchema, spec) as TtsClass["spec"],
  };
}

const clusterWith = (...classes: TtsClass[]) => ({ classes, isNamespaced: false });
const operatorWith = (...classes: TtsClass[]) => ({ classes, isNamespaced: true });
const byDefault = strictClass({ [defaultClassAnnotation]: "true" });

describe("a TtsModelCache is checked against", () => {
  it.each<[string, Json, CacheClasses, string | undefined]>([
    ["the class that it names", { className: "c" }, clusterWith(strictClass()), "ClassLimitExceeded"],
    ["the default class", {}, clusterWith(byDefault), "ClassLimitExceeded"],
    ["the class in the settings of the operator", {}, operatorWith(strictClass()), "ClassLimitExceeded"],
    ["a class that does not exist", { className: "d" }, clusterWith(strictClass()), "ClassNotFound"],
    ["classes that cannot be read", {}, { classes: undefined, isNamespaced: false }, "ClassesUnreadable"],
    ["no class if there is no default class", {}, clusterWith(strictClass()), undefined],
    ["no class without settings of the operator", {}, operatorWith(), undefined],
  ])("%s", (_what, spec, cluster, reason) => {
    expect(cacheProblem(cacheOf(spec), cluster)?.reason).toBe(reason);
  });
});

describe("the Job of a TtsModelCache", () => {
  const attempt = { attempt: 0, claimUid: "claim", beside: undefined };
  const server = { image: "server:1", pullPolicy: "IfNotPresent" } as const;
  const imagePullSecrets = [{ name: "registry" }];
  const defaults = { imagePullPolicy: "Always" as const, fixedUserIds: false, imagePullSecrets };

  const podOf = (spec: Json, ofClass = {}) =>
    fetchJob(cacheOf(spec), attempt, server, ofClass).spec.template.spec;

  it("has the defaults of the class for images and users", () => {
    const pod = podOf({}, defaults);
    expect(pod?.imagePullSecrets).toEqual(imagePullSecrets);
    expect(pod?.containers[0]?.imagePullPolicy).toBe("Always");
    expect(pod?.securityContext).not.toHaveProperty("runAsUser");
    expect(podOf({ imagePullSecrets: [{ name: "own" }] }, defaults)?.imagePullSecrets).toEqual([
      { name: "own" },
    ]);
  });

  it("has the settings of the operator without a class", () => {
    const pod = podOf({});
    expect(pod?.imagePullSecrets).toBeUndefined();
    expect(pod?.containers[0]?.imagePullPolicy).toBe("IfNotPresent");
    expect(pod?.securityContext).toHaveProperty("runAsUser");
  });
});
