import { describe, expect, it } from "vitest";
import type { Deployment, Pod } from "../../../../operator/facts/observed.ts";
import { workloadState } from "../../../../operator/workload/state.ts";
import { pod, running } from "../../../support/operator/observed.ts";

const open = { held: false, replicas: 2 };
const wish = { replicas: 2, settings: "new" };

function told(deployment: Deployment | undefined, pods: Pod[] = [], grant = open) {
  const state = workloadState({ deployment, pods }, grant, wish);
  return state.kind === "ready" ? "ready" : `${state.kind} ${state.problem.reason}: ${state.problem.message}`;
}

const waiting = (reason: string, more: object = {}) =>
  pod({
    containerStatuses: [
      {
        name: "mist",
        image: "i:1",
        imageID: "",
        ready: false,
        restartCount: 2,
        state: { waiting: { reason } },
        ...more,
      },
    ],
  });
const initStatus = (name: string) => ({ name, image: "i:1", imageID: "", ready: false, restartCount: 2 });
const conditions = (type: string, status: string, reason: string, message: string) => ({
  conditions: [{ type, status, reason, message }],
});

describe("a workload", () => {
  it.each<[string, string, RegExp]>([
    ["does not exist yet", told(undefined), /^progressing Creating/],
    ["serves", told(running(2)), /^ready$/],
    [
      "is not seen yet",
      told(running(2, { observedGeneration: 0 })),
      /^progressing RollingOut: .*has not processed/,
    ],
    ["is being updated", told(running(2, { updatedReplicas: 1 })), /^progressing RollingOut: .*1 of 2 pods/],
    [
      "is draining old pods",
      told(running(2, { replicas: 3 })),
      /^progressing RollingOut: .*1 pods with earlier settings/,
    ],
    [
      "is fetching its model",
      told(running(2, { updatedReplicas: 1 }), [
        pod({ initContainerStatuses: [{ ...initStatus("fetch-1"), state: { running: {} } }] }),
      ]),
      /^progressing FetchingModel: Pod demo-mist-1 is fetching its model files\. See kubectl logs -n ns demo-mist-1 -c fetch-1\.$/,
    ],
    [
      "cannot fetch its model",
      told(running(2, { availableReplicas: 0 }), [
        pod({
          initContainerStatuses: [
            {
              ...initStatus("fetch-0"),
              state: { waiting: { reason: "CrashLoopBackOff" } },
              lastState: {
                terminated: { exitCode: 1, message: "{}\nhttps://h/a answers 404; it is not there\n" },
              },
            },
          ],
        }),
      ]),
      /^failing CrashLoop: Container fetch-0 .* exit code 1, 2 times so far: https:\/\/h\/a answers 404; it is not there\. See/,
    ],
    ["has lost a pod", told(running(2, { availableReplicas: 1 })), /^progressing PodsNotReady: 1 of 2/],
    [
      "is stuck",
      told(running(2, conditions("Progressing", "False", "ProgressDeadlineExceeded", ""))),
      /^stalled ProgressDeadlineExceeded: .*900 seconds/,
    ],
    [
      "is beyond the quota",
      told(running(2, conditions("ReplicaFailure", "True", "FailedCreate", "exceeded quota: q"))),
      /^failing QuotaExceeded: .*ResourceQuota/,
    ],
    [
      "is refused by a policy",
      told(running(2, conditions("ReplicaFailure", "True", "FailedCreate", "violates PodSecurity"))),
      /^failing PodsRefused: .*violates PodSecurity/,
    ],
    [
      "is refused by another product's webhook",
      told(
        running(
          2,
          conditions(
            "ReplicaFailure",
            "True",
            "FailedCreate",
            'admission webhook "g.example" denied the request: no',
          ),
        ),
      ),
      /^failing AdmissionDenied: A pod was rejected by the admission webhook g\.example.*no\./,
    ],
    [
      "is held back in number",
      told(running(1), [], { held: false, replicas: 1 }),
      /^stalled LicenseHold: 1 of 2 replicas/,
    ],
    [
      "is held back in settings",
      told(running(2), [], { held: true, replicas: 2 }),
      /^stalled LicenseHold: .*earlier settings/,
    ],
    ["may not start", told(undefined, [], { held: true, replicas: 0 }), /^stalled LicenseHold: Not started/],
  ])("that %s is reported", (_what, state, expected) => {
    expect(state).toMatch(expected);
  });
});

describe("a pod that does not start", () => {
  const lacking = running(2, { availableReplicas: 1 });
  const unschedulable = (message: string) =>
    pod({ conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }] });

  it.each<[string, Pod, RegExp]>([
    ["image", waiting("ErrImagePull"), /^failing ImagePullFailed: .*i:1/],
    ["Secret of a variable", waiting("CreateContainerConfigError"), /^failing ContainerConfigError/],
    [
      "crash",
      waiting("CrashLoopBackOff", { lastState: { terminated: { exitCode: 7 } } }),
      /^failing CrashLoop: .*exit code 7, 2 times.*kubectl logs -n ns demo-mist-1 -c mist --previous/,
    ],
    [
      "memory",
      waiting("CrashLoopBackOff", { lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } }),
      /^failing CrashLoop: .*too much memory.*Raise its memory limit/,
    ],
    [
      "GPU",
      unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
      /^failing NoGpu: .*enough free nvidia\.com\/gpu for pod demo-mist-1: 0\/3 nodes/,
    ],
    [
      "node",
      unschedulable("0/3 nodes are available: 3 Insufficient cpu."),
      /^failing Unschedulable: .*Insufficient cpu/,
    ],
  ])("without its %s is reported", (_what, one, expected) => {
    expect(told(lacking, [one])).toMatch(expected);
  });

  it("does not count while it is being deleted, or if enough others serve", () => {
    const bad = waiting("ErrImagePull");
    const going = { ...bad, metadata: { ...bad.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(told(lacking, [going])).toMatch(/^progressing/);
    expect(told(running(2), [bad])).toBe("ready");
  });
});
