import { describe, expect, it } from "vitest";
import { cacheNetworkPolicy } from "../../../../operator/desired/network-policy.ts";
import type { KubernetesObject } from "../../../../operator/facts/kubernetes-object.ts";
import type { TtsModelCache } from "../../../../operator/facts/observed.ts";
import type { ReconcileContext } from "../../../../operator/reconcile/reconcile.ts";
import { reconcileModelCache } from "../../../../operator/reconcile/reconcile-cache.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { serverSettings } from "../../../support/operator/observed.ts";

interface Situation {
  readonly isEnabled: boolean;
  /** Whether the API server has the same TtsModelCache as the cache of the operator. */
  readonly isCurrent?: boolean;
  readonly className?: string;
}

/** Reconciles a TtsModelCache with a NetworkPolicy, and returns the writes of NetworkPolicies. */
async function reconcile({ isEnabled, isCurrent = true, className }: Situation): Promise<string[]> {
  const spec = { preset: "kokoro-82m", storage: { size: "1Gi" }, networkPolicy: { enabled: isEnabled } };
  const cache = {
    apiVersion: "tts.svc.dev/v1alpha1",
    kind: "TtsModelCache",
    metadata: { name: "voices", namespace: "ns", uid: "uid", generation: 1 },
    spec: { ...spec, ...(className && { className }) },
  } as unknown as TtsModelCache;
  const existing = cacheNetworkPolicy({
    ...cache,
    spec: { ...cache.spec, networkPolicy: { enabled: true } },
  });
  const stored: Record<string, unknown> = {
    "TtsModelCache/ns/voices": cache,
    "NetworkPolicy/ns/voices-fetch": existing,
  };
  const writes: string[] = [];
  const context = {
    clock: new FakeClock(),
    settings: serverSettings,
    view: {
      isNamespaced: false,
      isInstalled: async () => true,
      knowsAll: () => true,
      followCacheChildren: async () => undefined,
      get: (kind: string, key: string) => stored[`${kind}/${key}`],
      group: () => [],
    },
    writer: {
      isCurrent: async () => isCurrent,
      ensureAll: async (_owner: KubernetesObject, children: readonly KubernetesObject[]) => {
        writes.push(...children.filter(({ kind }) => kind === "NetworkPolicy").map(() => "apply"));
        return { problems: [], applied: [], failure: undefined };
      },
      ensureStatus: async () => false,
      remove: async ({ kind }: KubernetesObject) => writes.push(`remove ${kind}`),
    },
  } as unknown as ReconcileContext;
  await reconcileModelCache(context, "ns/voices");
  return writes;
}

describe("the NetworkPolicy of a TtsModelCache", () => {
  it.each<[string, Situation, string[]]>([
    ["is applied while it is enabled", { isEnabled: true }, ["apply"]],
    ["is removed when it is disabled", { isEnabled: false }, ["remove NetworkPolicy"]],
    ["is not removed by an operator with an older TtsModelCache", { isEnabled: false, isCurrent: false }, []],
    ["does not change while its class does not exist", { isEnabled: true, className: "deleted" }, []],
  ])("%s", async (_what, situation, writes) => {
    expect(await reconcile(situation)).toEqual(writes);
  });
});
