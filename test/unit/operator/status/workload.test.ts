import { describe, expect, it } from "vitest";
import type { Deployment, Pod } from "../../../../operator/facts/observed.ts";
import { workloadState } from "../../../../operator/workload/state.ts";
import { pod, running } from "../../../support/operator/observed.ts";

const open = { held: false, replicas: 2 };
const desired = { replicas: 2, settings: "new" };

function stateOf(deployment: Deployment | undefined, pods: Pod[] = [], grant = open) {
  const state = workloadState({ deployment, pods }, grant, desired);
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

describe("the state of a Deployment", () => {
  it.each<[string, string, RegExp]>([
    ["does not exist yet", stateOf(undefined), /^progressing Creating/],
    ["is ready", stateOf(running(2)), /^ready$/],
    [
      "was not processed by its controller yet",
      stateOf(running(2, { observedGeneration: 0 })),
      /^progressing RollingOut: .*has not processed/,
    ],
    [
      "is being updated",
      stateOf(running(2, { updatedReplicas: 1 })),
      /^progressing RollingOut: .*1 of 2 pods/,
    ],
    [
      "is draining old pods",
      stateOf(running(2, { replicas: 3 })),
      /^progressing RollingOut: .*pods with earlier settings are draining \(1 left\)/,
    ],
    [
      "is fetching its model",
      stateOf(running(2, { updatedReplicas: 1 }), [
        pod({ initContainerStatuses: [{ ...initStatus("fetch-1"), state: { running: {} } }] }),
      ]),
      /^progressing FetchingModel: Pod demo-mist-1 is fetching its model files\. See kubectl logs -n ns demo-mist-1 -c fetch-1\.$/,
    ],
    [
      "cannot fetch its model",
      stateOf(running(2, { availableReplicas: 0 }), [
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
      /^failing CrashLoop: Container fetch-0 .* exit code 1, and has restarted 2 times\. Its last message is: https:\/\/h\/a answers 404; it is not there\. See/,
    ],
    [
      "has too few ready pods",
      stateOf(running(2, { availableReplicas: 1 })),
      /^progressing PodsNotReady: 1 of 2/,
    ],
    [
      "exceeded its progress deadline",
      stateOf(running(2, conditions("Progressing", "False", "ProgressDeadlineExceeded", ""))),
      /^stalled ProgressDeadlineExceeded: .*900 seconds/,
    ],
    [
      "exceeds a quota",
      stateOf(running(2, conditions("ReplicaFailure", "True", "FailedCreate", "exceeded quota: q"))),
      /^failing QuotaExceeded: .*ResourceQuota/,
    ],
    [
      "violates a policy",
      stateOf(running(2, conditions("ReplicaFailure", "True", "FailedCreate", "violates PodSecurity"))),
      /^failing PodsRefused: .*violates PodSecurity/,
    ],
    [
      "is rejected by an admission webhook",
      stateOf(
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
      "may not run all replicas by the license",
      stateOf(running(1), [], { held: false, replicas: 1 }),
      /^stalled LicenseHold: 1 of 2 replicas/,
    ],
    [
      "may not get its settings by the license",
      stateOf(running(2), [], { held: true, replicas: 2 }),
      /^stalled LicenseHold: .*earlier settings/,
    ],
    [
      "may not start by the license",
      stateOf(undefined, [], { held: true, replicas: 0 }),
      /^stalled LicenseHold: The pods are not started/,
    ],
  ])("that %s has the matching reason and message", (_what, state, expected) => {
    expect(state).toMatch(expected);
  });
});

describe("a pod that does not start", () => {
  const incomplete = running(2, { availableReplicas: 1 });
  const unschedulable = (message: string) =>
    pod({ conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }] });

  it.each<[string, Pod, RegExp]>([
    ["its image cannot be pulled", waiting("ErrImagePull"), /^failing ImagePullFailed: .*i:1/],
    [
      "the Secret of a variable is missing",
      waiting("CreateContainerConfigError"),
      /^failing ContainerConfigError/,
    ],
    [
      "its container crashes",
      waiting("CrashLoopBackOff", { lastState: { terminated: { exitCode: 7 } } }),
      /^failing CrashLoop: .*exit code 7, and has restarted 2 times\. See kubectl logs -n ns demo-mist-1 -c mist --previous/,
    ],
    [
      "it exceeds its memory limit",
      waiting("CrashLoopBackOff", { lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } } }),
      /^failing CrashLoop: .*too much memory.*Raise the memory limit/,
    ],
    [
      "no GPU is free",
      unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
      /^failing NoGpu: .*enough free nvidia\.com\/gpu for pod demo-mist-1: 0\/3 nodes.*Add a node with a free nvidia\.com\/gpu, /,
    ],
    [
      "no node has enough CPU",
      unschedulable("0/3 nodes are available: 3 Insufficient cpu."),
      /^failing Unschedulable: .*Insufficient cpu/,
    ],
  ])("because %s is reported with the cause", (_what, failingPod, expected) => {
    expect(stateOf(incomplete, [failingPod])).toMatch(expected);
  });

  it("is ignored while it is being deleted, or if enough other pods are ready", () => {
    const failing = waiting("ErrImagePull");
    const deleting = {
      ...failing,
      metadata: { ...failing.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" },
    };
    expect(stateOf(incomplete, [deleting])).toMatch(/^progressing/);
    expect(stateOf(running(2), [failing])).toBe("ready");
  });
});
