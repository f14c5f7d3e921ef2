import { describe, expect, it } from "vitest";
import type { Evidence } from "../../../../operator/cli/evidence.ts";
import { explain, explanationText } from "../../../../operator/cli/explain.ts";
import { secretReferences } from "../../../../operator/cli/references.ts";
import type { Pod, TtsDeployment, TtsModelPool } from "../../../../operator/facts/observed.ts";
import { now, pod, ttsDeployment, ttsModelPool } from "../../../support/operator/observed.ts";

const since = "2025-12-31T23:30:00Z";
type ConditionsByType = Record<
  string,
  readonly [status: "True" | "False" | "Unknown", reason: string, message: string]
>;

function conditions(byType: ConditionsByType) {
  return Object.entries(byType).map(([type, [status, reason, message]]) => ({
    type,
    status,
    reason,
    message,
    observedGeneration: 1,
    lastTransitionTime: since,
  }));
}

function deploymentWith(byType: ConditionsByType, spec = {}): TtsDeployment {
  const deployment = ttsDeployment(spec);
  return {
    ...deployment,
    status: {
      observedGeneration: 1,
      endpoint: "http://demo-api.ns.svc:8000",
      summary: { models: "1/1", streams: "16" },
      conditions: conditions(byType),
      models: [],
      license: { state: "valid" },
    },
  };
}

function poolWith(byType: ConditionsByType): TtsModelPool {
  const pool = ttsModelPool();
  const metadata = { ...pool.metadata, ownerReferences: [] };
  return {
    ...pool,
    metadata,
    status: { conditions: conditions(byType) } as unknown as TtsModelPool["status"] & object,
  };
}

function evidence(deployment: TtsDeployment, more: Partial<Evidence> = {}): Evidence {
  return {
    now,
    deployment,
    pools: [],
    workloads: [],
    pods: [],
    warnings: [],
    secrets: [],
    operators: [],
    unseen: [],
    ...more,
  };
}

const stalled = (reason: string, message: string): ConditionsByType => ({
  Ready: ["False", reason, message],
  Stalled: ["True", reason, message],
});

describe("the command explain", () => {
  it("shows the address of a ready TtsDeployment, and no commands", () => {
    const explanation = explain(evidence(deploymentWith({ Ready: ["True", "Serving", "All serve."] })));
    expect(explanation).toMatchObject({ state: "ready", blockers: [], notes: [] });
    expect(explanation.summary).toBe(
      "Ready for 30 min: 1/1 pools, up to 16 concurrent streams, at http://demo-api.ns.svc:8000.",
    );
  });

  it("shows the grace period first, of the license of a ready TtsDeployment", () => {
    const byType: ConditionsByType = {
      Ready: ["True", "Serving", "All serve."],
      LicenseValid: ["False", "Expired", "Grace ends on Friday."],
    };
    const warning = { kind: "Pod", name: "a", reason: "Unhealthy", note: "probe failed", times: 1 };
    const found = explain(evidence(deploymentWith(byType), { warnings: [{ ...warning, lastSeen: now }] }));
    expect(found.state).toBe("ready");
    expect(found.summary).toMatch(
      /^Ready .* The condition LicenseValid is False; the reason and the remedy follow\.$/,
    );
    expect(found.blockers).toMatchObject([
      { about: "license", reason: "Expired", message: "Grace ends on Friday." },
    ]);
    const text = explanationText(found);
    expect(text.indexOf("1. license: Expired")).toBeGreaterThan(0);
    expect(text.indexOf("1. license: Expired")).toBeLessThan(text.indexOf("Also found:"));
  });

  it("shows each problem once, with the most specific message and its commands", () => {
    const message = "There is no license. The license is read from Secret ns/license, key license.jwt.";
    const deployment = deploymentWith({
      ...stalled("Missing", message),
      LicenseValid: ["False", "Missing", message],
      ApiReady: [
        "False",
        "LicenseHold",
        "The pods are not started, because the license does not allow it. See the condition LicenseValid of the TtsDeployment.",
      ],
    });
    const pool = poolWith({
      Ready: [
        "False",
        "LicenseHold",
        "The pods are not started, because the license does not allow it. See the condition LicenseValid of the TtsDeployment.",
      ],
    });
    const secrets = [{ path: "license.secretRef", name: "license", exists: false }];
    const explanation = explain(evidence(deployment, { pools: [pool], secrets }));
    expect(explanation.state).toBe("blocked");
    expect(explanation.blockers.map(({ about, reason }) => `${about}: ${reason}`)).toEqual([
      "license: Missing",
      "API: LicenseHold",
    ]);
    expect(explanation.blockers[0]?.commands.join("\n")).toContain(
      "kubectl -n ns create secret generic license --from-file=license.jwt=license.jwt",
    );
  });

  it("shows the commands that add a license if it is required and not set", () => {
    const message = "A license is required, and spec.license is not set.";
    const byType = {
      ...stalled("LicenseMissing", message),
      LicenseValid: ["False", "Missing", message],
    } as ConditionsByType;
    const [blocker] = explain(evidence(deploymentWith(byType, { license: undefined }))).blockers;
    expect(blocker).toMatchObject({ about: "license", reason: "Missing", message });
    expect(blocker?.commands).toEqual([
      "kubectl -n ns create secret generic tts-license --from-file=license.jwt",
      `kubectl -n ns patch ttsd demo --type=merge -p '{"spec":{"license":{"secretRef":{"name":"tts-license"}}}}'`,
    ]);
  });

  it("does not report the missing Secret of a license that is not required", () => {
    const byType: ConditionsByType = {
      Ready: ["False", "PodsNotReady", "Pods start."],
      LicenseValid: ["True", "NotRequired", "No license is required."],
    };
    const secrets = [
      { path: "license.secretRef", name: "license", exists: false },
      { path: "api.keys.secretRef", name: "keys", exists: false },
    ];
    const { blockers } = explain(evidence(deploymentWith(byType), { secrets }));
    expect(blockers.map(({ about }) => about)).toEqual(["Secret keys"]);
  });

  it("names the pod and the container in the commands", () => {
    const crashing: Pod = {
      ...pod({
        containerStatuses: [
          {
            name: "mist",
            image: "i",
            imageID: "",
            ready: false,
            restartCount: 4,
            state: { waiting: { reason: "CrashLoopBackOff" } },
            lastState: { terminated: { exitCode: 1 } },
          },
        ],
      }),
      spec: { containers: [{ name: "mist" }] },
    };
    const message =
      "Container mist of pod demo-mist-1 ended with exit code 1, and has restarted 4 times. See kubectl logs -n ns demo-mist-1 -c mist --previous.";
    const deployment = deploymentWith({
      Ready: ["False", "CrashLoop", message],
      Stalled: ["False", "Progressing", ""],
    });
    const pool = poolWith({ Ready: ["False", "CrashLoop", message] });
    const { state, blockers } = explain(evidence(deployment, { pools: [pool], pods: [crashing] }));
    expect(state).toBe("progressing");
    expect(blockers).toHaveLength(1);
    expect(blockers[0]).toMatchObject({ about: "pool mist", reason: "CrashLoop" });
    expect(blockers[0]?.commands).toEqual([
      "kubectl -n ns logs demo-mist-1 -c mist --previous",
      "kubectl -n ns describe pod demo-mist-1",
    ]);
  });

  it.each([
    [
      "ModelCacheNotReady",
      "The pods start when the TtsModelCache is ready. TtsModelCache voices is not ready (Fetching): 1 of 3 files.",
      ["kubectl -n ns describe ttsmc voices"],
    ],
    [
      "ModelCacheNotReady",
      "The pods start when the TtsModelCache is ready.",
      ["kubectl -n ns describe ttsmc voices", "kubectl -n ns describe ttsmc voices-2"],
    ],
    [
      "ModelCacheNotFound",
      "The pods start when the TtsModelCache is ready. TtsModelCache voices-2 does not exist. Create it, or change cache.name.",
      ["kubectl -n ns describe ttsmc voices-2", "kubectl -n ns get ttsmc"],
    ],
  ])(
    "shows the command that describes the TtsModelCache for the reason %s: %s",
    (reason, message, expected) => {
      const byType: ConditionsByType = { Ready: ["False", reason, message] };
      const deployment: TtsDeployment = {
        ...deploymentWith(byType),
        spec: ttsDeployment({}, [
          { name: "mist", kind: "mist", cache: { name: "voices" } },
          { name: "other", kind: "mist", cache: { name: "voices" } },
          { name: "third", kind: "mist", cache: { name: "voices-2" } },
        ]).spec,
      };
      const { blockers } = explain(evidence(deployment, { pools: [poolWith(byType)] }));
      expect(blockers.map(({ about, commands }) => [about, commands])).toEqual([["pool mist", expected]]);
    },
  );

  it("shows the problem of a pod that no condition reports", () => {
    const unschedulable = pod(
      {
        conditions: [
          { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/1 nodes" },
        ],
      },
      "demo-api-2",
    );
    const deployment = deploymentWith({ Ready: ["False", "RollingOut", "Rolling out."] });
    const { blockers } = explain(evidence(deployment, { pods: [unschedulable] }));
    expect(blockers.map(({ about, reason }) => [about, reason])).toEqual([
      ["pod demo-api-2", "Unschedulable"],
    ]);
  });

  it.each([
    ["no operator exists", [], "NoOperator"],
    ["the pods of the operator are not ready", [pod({}, "op")], "OperatorNotReady"],
    [
      "an operator runs",
      [pod({ conditions: [{ type: "Ready", status: "True" }] }, "op")],
      "OperatorElsewhere",
    ],
    ["operators cannot be listed", undefined, "OperatorUnseen"],
  ])(
    "reports the state of the operator if the TtsDeployment was never reconciled: %s",
    (_what, operators, reason) => {
      const { state, blockers } = explain(evidence(ttsDeployment(), { operators }));
      expect(state).toBe("unwatched");
      expect(blockers.map((blocker) => blocker.reason)).toEqual([reason]);
    },
  );

  it("shows what blocks a deletion", () => {
    const { metadata, ...rest } = deploymentWith({ Ready: ["True", "Serving", ""] });
    const deleting = { ...metadata, deletionTimestamp: since, finalizers: ["foregroundDeletion"] };
    const { state, blockers } = explain(evidence({ ...rest, metadata: deleting }));
    expect(state).toBe("deleting");
    expect(blockers[0]?.message).toContain("foreground deletion");
  });

  it("shows the command that resumes a suspended TtsDeployment", () => {
    const deployment = deploymentWith(
      { Ready: ["Unknown", "Suspended", "spec.suspend is true."] },
      { suspend: true },
    );
    const { state, blockers } = explain(evidence(deployment));
    expect(state).toBe("suspended");
    expect(blockers[0]?.commands[0]).toContain('\'{"spec":{"suspend":false}}\'');
  });

  it("shows recent warnings that are not part of another message", () => {
    const warning = (note: string, lastSeen: number) => ({
      kind: "Pod",
      name: "demo-mist-1",
      reason: "Unhealthy",
      note,
      times: 3,
      lastSeen,
    });
    const deployment = deploymentWith({ Ready: ["False", "PodsNotReady", "0 of 1 pods are ready."] });
    const warnings = [warning("probe failed", now - 5_000), warning("long ago", now - 3_600_000)];
    expect(explain(evidence(deployment, { warnings })).notes).toEqual([
      "Pod demo-mist-1: Unhealthy: probe failed (3 times, last 5 s ago)",
    ]);
  });

  it("prints all problems as text, and names the objects that the user may not read", () => {
    const deployment = deploymentWith(
      stalled("NameTaken", "Service ns/demo-api was not created by this operator."),
    );
    const text = explanationText(explain(evidence(deployment, { unseen: ["events (not allowed)"] })));
    expect(text).toContain("TtsDeployment ns/demo: Not ready for 30 min. You must act: 1 problem.");
    expect(text).toContain(
      "1. spec: NameTaken (since 2025-12-31T23:30:00Z)\n   Service ns/demo-api was not created",
    );
    expect(text).toContain("The command could not read: events (not allowed).");
  });
});

describe("the Secrets that a spec names", () => {
  it("are found in all fields, except optional ones", () => {
    const spec = {
      imagePullSecrets: [{ name: "pull" }],
      license: { secretRef: { name: "license", key: "license.jwt" } },
      api: { keys: { secretRef: { name: "keys" } }, tls: { secretName: "tls" } },
      models: [
        {
          podTemplate: {
            spec: {
              volumes: [
                { name: "a", secret: { secretName: "mounted" } },
                { name: "b", secret: { secretName: "maybe", optional: true } },
              ],
            },
          },
        },
        { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "model", key: "a" } } }] },
        { env: [{ name: "B", valueFrom: { secretKeyRef: { name: "maybe", key: "b", optional: true } } }] },
      ],
    };
    expect(secretReferences(spec).map(({ path, name }) => `${path}=${name}`)).toEqual([
      "imagePullSecrets[0]=pull",
      "license.secretRef=license",
      "api.keys.secretRef=keys",
      "api.tls.secretName=tls",
      "models[0].podTemplate.spec.volumes[0].secret.secretName=mounted",
      "models[1].env[0].valueFrom.secretKeyRef=model",
    ]);
  });
});
