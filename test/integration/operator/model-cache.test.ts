/**
 * Tests TtsModelCaches with the Job controller and the garbage collector of Kubernetes. No kubelet runs: the
 * tests write the status of the pods that fetch files.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { CacheProgress, CacheResult } from "../../../config/contract/model-cache.ts";
import { labels, modelCacheFinalizer } from "../../../config/contract/names.ts";
import type { Claim, Deployment, Job, Pod, TtsModelCache } from "../../../operator/facts/observed.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { eventually } from "../../support/eventually.ts";
import { argoVerdicts } from "../../support/judges/argo-health.ts";
import { type Verdict, verdictsOf } from "../../support/judges/judges.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

let plane: ControlPlane;
let house: OperatorHouse;
let progress: CacheProgress;

const operator = { allNamespaces: true, licenseKeys: { keys: [] }, progress: () => progress };

beforeAll(async () => {
  const controllers = ["job-controller", "persistentvolumeclaim-protection-controller"];
  plane = await controlPlane({ controllerManager: true, controllers, prepare: installCrds });
});

afterAll(() => plane.stop());

beforeEach(async () => {
  progress = {
    files: 1,
    totalFiles: 3,
    bytes: 41_000_000,
    totalBytes: 100_000_000,
    bytesPerSecond: 7_000_000,
  };
  house = await OperatorHouse.open({ clusterWide: true }, plane.address);
  await house.restart(operator);
});

afterEach(async () => {
  await house.stopOperator();
  for (const kind of ["TtsDeployment", "TtsModelPool", "TtsModelCache"])
    for (const { metadata } of await house.admin.list(kind, { namespace: house.namespace }))
      await house.remove(kind, metadata.name);
  await house[Symbol.asyncDispose]();
});

type Json = { [name: string]: unknown };
const mist = { name: "mist", kind: "mist", replicas: 1, cache: { name: "voices" } };
const plain = { license: undefined };

const untilCache = (type: string, wanted: RegExp) =>
  house.untilConditionOf("TtsModelCache", "voices", type, wanted);
const untilPool = (name: string, type: string, wanted: RegExp) =>
  house.untilConditionOf("TtsModelPool", name, type, wanted);

const jobs = async () => (await house.admin.list("Job", { namespace: house.namespace })) as Job[];
const fetchPods = async () =>
  (await house.admin.list("Pod", {
    namespace: house.namespace,
    labelSelector: labels.modelCache,
  })) as Pod[];

/** Waits for the pod of the Job with this name, which the Job controller creates. */
async function podOf(job: string): Promise<Pod> {
  return eventually(`a pod of Job ${job}`, async () =>
    (await fetchPods()).find(({ metadata }) => metadata.labels?.["job-name"] === job),
  );
}

async function bindClaim(name = "voices-models"): Promise<void> {
  const claim = (await eventually(`claim ${name}`, () => house.get("PersistentVolumeClaim", name))) as Claim;
  const accessModes = claim.spec?.accessModes;
  await house.setStatus(claim, { phase: "Bound", accessModes, capacity: { storage: "1Gi" } });
}

async function runs(job: string): Promise<Pod> {
  const pod = await podOf(job);
  await house.setStatus(pod, {
    phase: "Running",
    podIP: "10.0.0.1",
    startTime: new Date().toISOString(),
    containerStatuses: [container({ running: {} })],
  });
  return pod;
}

/** Ends the container of a Job with a result in its termination message. */
async function ends(job: string, result: CacheResult | string): Promise<void> {
  const pod = await podOf(job);
  const isFilled = typeof result !== "string" && result.outcome === "filled";
  const message = typeof result === "string" ? result : JSON.stringify(result);
  const time = new Date().toISOString();
  const terminated = { exitCode: isFilled ? 0 : 1, message, startedAt: time, finishedAt: time };
  await house.setStatus(pod, {
    phase: isFilled ? "Succeeded" : "Failed",
    containerStatuses: [container({ terminated })],
  });
}

function container(state: Json): Json {
  return { name: "fetch", image: "i", imageID: "", ready: false, restartCount: 0, state };
}

const filled = { outcome: "filled", files: 3, bytes: 100_000_000, fetched: 3, removed: 0 } as const;

/** Creates a cache, and fills it. */
async function fillCache(spec: Json = {}): Promise<void> {
  await house.putCache(spec);
  await bindClaim();
  await ends("voices-fetch-1-0", filled);
  await untilCache("Ready", /^True Fetched/);
}

async function generationOf(name: string): Promise<number | undefined> {
  return (await house.workload(name)).metadata.generation;
}

const claimsOf = ({ spec }: Deployment) =>
  spec?.template.spec?.volumes?.flatMap(
    ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [],
  );

describe("a TtsModelCache", () => {
  it("creates a claim and a Job, reports the progress, and removes the finished Job", async () => {
    const url = "https://models.example.com/nora.onnx";
    await house.putCache({ sources: [{ url, path: "nora/nora.onnx", secretRef: { name: "store" } }] });
    await untilCache("Ready", /^False (ClaimPending|Creating)/);
    const claim = (await house.mustGet("PersistentVolumeClaim", "voices-models")) as Claim;
    expect(claim.spec).toMatchObject({
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    });
    await bindClaim();
    const pod = await runs("voices-fetch-1-0");
    expect(pod.spec).toMatchObject({
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true },
      containers: [
        {
          envFrom: [{ prefix: "SOURCE_0_", secretRef: { name: "store" } }],
          securityContext: { readOnlyRootFilesystem: true },
        },
      ],
    });
    const words = pod.spec?.containers[0]?.args ?? [];
    expect(JSON.parse(words[words.indexOf("--plan") + 1] ?? "")).toEqual({
      owner: (await house.cache()).metadata.uid,
      sources: [{ url, path: "nora/nora.onnx", credentials: "SOURCE_0_" }],
    });
    await untilCache("Ready", /^False Fetching/);
    expect((await house.cache()).status).toMatchObject({
      phase: "Fetching",
      progress,
      summary: { files: "1/3", bytes: "41MB/100MB" },
    });
    progress = { ...progress, files: 2, bytes: 80_000_000 };
    await house.advance(5_100);
    expect((await house.cache()).status?.progress).toEqual(progress);

    await ends("voices-fetch-1-0", filled);
    await untilCache("Ready", /^True Fetched/);
    expect((await house.cache()).status).toMatchObject({
      phase: "Ready",
      summary: { files: "3/3", bytes: "100MB" },
      fetched: { files: 3, bytes: 100_000_000, claim: claim.metadata.uid },
    });
    await house.until(async () => (await jobs()).length === 0, "the finished Job is removed");
    await house.idle();
    expect(await house.writesOfRestart(operator)).toBe(0);
    expect(await house.requestsDuring(3_600_000)).toEqual([]);
  });

  it("has a NetworkPolicy for its pods while it is enabled", async () => {
    await house.putCache({ networkPolicy: { enabled: true } });
    const policy = () => house.get("NetworkPolicy", "voices-fetch");
    await house.until(async () => (await policy()) !== undefined, "the NetworkPolicy");
    expect((await policy())?.spec).toMatchObject({
      podSelector: { matchLabels: { [labels.modelCache]: "voices" } },
      policyTypes: ["Ingress", "Egress"],
    });
    await house.putCache({});
    await house.untilGone("NetworkPolicy", "voices-fetch");
  });

  it("reports a volume that no node can have, with the message of the scheduler", async () => {
    await house.putCache();
    const pod = await podOf("voices-fetch-1-0");
    const message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims";
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }];
    await house.setStatus(pod, { conditions });
    await untilCache("Ready", /^False ClaimPending: .*unbound immediate.*kubectl describe pvc/);
  });

  it("uses an existing claim, and waits for it", async () => {
    await house.putCache({ storage: { existingClaim: { claimName: "mine" } } });
    await untilCache("Stalled", /^True ClaimNotFound: PersistentVolumeClaim mine does not exist/);
    await house.admin.create({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "mine", namespace: house.namespace },
      spec: { accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } },
    });
    await house.advance(30_100);
    await ends("voices-fetch-1-0", filled);
    await untilCache("Ready", /^True/);
    const claim = await house.mustGet("PersistentVolumeClaim", "mine");
    expect(claim.metadata.ownerReferences).toBeUndefined();
  });

  it("does not use a claim of the same name that it did not create", async () => {
    await house.admin.create({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "voices-models", namespace: house.namespace },
      spec: { accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } },
    });
    await house.putCache();
    await untilCache("Ready", /^False NameTaken: PersistentVolumeClaim .*voices-models was not created/);
    expect(await jobs()).toEqual([]);
  });

  it("is limited by the model sources of its class", async () => {
    const limits = { allowedModelSources: ["https://models.example.com/", "preset:kokoro-82m"] };
    await house.putClass("sources", { limits });
    await house.putCache({ className: "sources", sources: [{ url: "https://other.example.com/a" }] });
    await untilCache(
      "Stalled",
      /^True ClassLimitExceeded: TtsClass sources .*spec\.sources\[0\]\.url is https:\/\/other\.example\.com\/a, but the class allows/,
    );
    expect(await jobs()).toEqual([]);
    await house.putCache({ className: "sources", preset: "kokoro-82m" });
    await podOf("voices-fetch-2-0");
    await house.putCache({ className: "no-such-class" });
    await untilCache("Stalled", /^True ClassNotFound/);
  });
});

describe("a failed attempt", () => {
  const failed = (reason: "DigestMismatch" | "DiskFull" | "FetchFailed", message: string) =>
    ({ outcome: "failed", reason, message }) as const;

  it("is retried with growing pauses, also by another operator, and the reason is in the status", async () => {
    await house.putCache();
    await bindClaim();
    await ends("voices-fetch-1-0", failed("FetchFailed", "the server did not respond"));
    await untilCache("Ready", /^False FetchFailed: Fetching failed once: the server did not respond\./);
    await untilCache("Stalled", /^False/);
    await house.until(async () => (await jobs()).length === 0, "the failed Job is removed");
    // The clock also follows real time, so the restart shortens the remaining pause.
    await house.restart(operator);
    expect(await jobs()).toEqual([]);
    await house.advance(11_000);
    await ends("voices-fetch-1-1", failed("FetchFailed", "the server did not respond"));
    await untilCache("Ready", /^False FetchFailed: Fetching failed 2 times/);
    await house.advance(9_000);
    expect((await jobs()).map(({ metadata }) => metadata.name)).not.toContain("voices-fetch-1-2");
    await house.advance(12_000);
    await ends("voices-fetch-1-2", filled);
    await untilCache("Ready", /^True Fetched/);
    expect((await house.cache()).status).not.toHaveProperty("failure");
  });

  it("with another digest stalls the cache until a user acts, and a changed spec is fetched at once", async () => {
    await house.putCache();
    await bindClaim();
    await ends("voices-fetch-1-0", failed("DigestMismatch", "nora.onnx has the SHA-256 b; expected a"));
    await untilCache("Stalled", /^True DigestMismatch: .*expected a\. Check that the source/);
    expect((await house.cache()).status?.phase).toBe("Failed");
    await house.advance(3_000_000);
    expect(await jobs()).toEqual([]);
    await house.putCache({ sources: [{ url: "https://models.example.com/other.onnx" }] });
    await ends("voices-fetch-2-0", filled);
    await untilCache("Ready", /^True/);
  });

  it("on a full volume says so, and a larger claim is used at once", async () => {
    const storageClass = {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      allowVolumeExpansion: true,
    };
    const expandable = { ...storageClass, metadata: { name: "expandable" }, provisioner: "example.com/disk" };
    await kubectlOrThrow(plane.address, ["apply", "-f", "-"], JSON.stringify(expandable));
    const storage = (size: string) => ({ storage: { claim: { size, storageClassName: "expandable" } } });
    await house.putCache(storage("1Gi"));
    await bindClaim();
    await ends("voices-fetch-1-0", failed("DiskFull", "the cache is full after 7 bytes of nora.onnx"));
    await untilCache("Stalled", /^True DiskFull: .*Increase storage\.claim\.size/);
    await house.putCache(storage("2Gi"));
    await ends("voices-fetch-2-0", filled);
    await untilCache("Ready", /^True/);
  });

  it("to grow a claim that cannot grow is reported, and the files stay usable", async () => {
    await fillCache();
    await house.putCache({ storage: { claim: { size: "2Gi" } } });
    await untilCache("Ready", /^False ApplyFailed: .*voices-models could not be written: .*resize/);
    expect((await house.cache()).status?.fetched).toBeDefined();
  });

  it("of a pod that is lost with its node is repeated, and the next pod resumes", async () => {
    await house.putCache();
    await bindClaim();
    const pod = await runs("voices-fetch-1-0");
    await house.admin.remove({
      apiVersion: "v1",
      kind: "Pod",
      namespace: house.namespace,
      name: pod.metadata.name,
    });
    await untilCache("Ready", /^False FetchInterrupted: .*its node was restarted.*The next attempt resumes/);
    await house.advance(11_000);
    await ends("voices-fetch-1-1", filled);
    await untilCache("Ready", /^True/);
  });

  it("without a result shows the end of the log", async () => {
    await house.putCache();
    await bindClaim();
    await ends("voices-fetch-1-0", "Error: unexpected\n    at line 1");
    await untilCache("Ready", /^False FetchFailed: .*ended with exit code 1\. at line 1\./);
  });
});

describe("pools that name a TtsModelCache", () => {
  it("of two TtsDeployments share it, wait for it, and mount its claim", async () => {
    await house.putDeployment(plain, [mist]);
    await untilPool("demo-mist", "Ready", /^False ModelCacheNotFound: .*TtsModelCache voices does not exist/);
    await house.putCache();
    await house.putDeployment(plain, [{ ...mist, name: "other" }], "second");
    await untilPool("demo-mist", "Ready", /^False ModelCacheNotReady: The pods start when the TtsModelCache/);
    await house.untilCondition("ModelsReady", /^False ModelCacheNotReady/);
    await house.idle();
    expect(await house.get("Deployment", "demo-mist")).toBeUndefined();
    await bindClaim();
    await ends("voices-fetch-1-0", filled);
    await house.serve("demo-api", "demo-mist", "second-api", "second-other");
    await house.untilReady();
    await house.untilReady("second");
    for (const name of ["demo-mist", "second-other"]) {
      const workload = await house.workload(name);
      expect(claimsOf(workload)).toEqual(["voices-models"]);
      const [model] = workload.spec?.template.spec?.containers ?? [];
      expect(model?.volumeMounts).toContainEqual(expect.objectContaining({ name: "models", readOnly: true }));
      await untilPool(name, "ModelCacheReady", /^True Fetched/);
    }
    await house.until(
      async () => (await house.cache()).status?.users.join() === "demo-mist,second-other",
      "both pools are in the status of the cache",
    );
    expect(await house.writesOfRestart(operator)).toBe(0);
  });

  it("keep their pods while changed sources are fetched, and while the fetch fails", async () => {
    await fillCache();
    await house.putDeployment(plain, [mist]);
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
    const before = await generationOf("demo-mist");
    await house.putCache({ sources: [{ url: "https://models.example.com/vera.onnx" }] });
    await runs("voices-fetch-2-0");
    await untilPool("demo-mist", "ModelCacheReady", /^False ModelCacheNotReady: .*\(Fetching\)/);
    await house.untilReady();
    await ends("voices-fetch-2-0", { outcome: "failed", reason: "FetchFailed", message: "no route" });
    await untilPool("demo-mist", "ModelCacheReady", /^False ModelCacheNotReady: .*no route/);
    await house.putDeployment(plain, [{ ...mist, env: [{ name: "SOME", value: "value" }] }]);
    await house.until(async () => (await generationOf("demo-mist")) !== before, "new settings roll out");
    await house.serve("demo-mist");
    await house.untilReady();
    expect(claimsOf(await house.workload("demo-mist"))).toEqual(["voices-models"]);
    await house.advance(11_000);
    await ends("voices-fetch-2-1", filled);
    await untilPool("demo-mist", "ModelCacheReady", /^True/);
  });

  it("keep a deleted cache until they no longer name it, and then its claim is deleted", async () => {
    await fillCache();
    await house.putDeployment(plain, [mist]);
    await house.serve("demo-api", "demo-mist");
    await house.untilReady();
    const before = await generationOf("demo-mist");
    expect((await house.cache()).metadata.finalizers).toEqual([modelCacheFinalizer]);
    await house.remove("TtsModelCache", "voices");
    await untilCache("Stalled", /^True InUse: .*these pools name it: demo-mist/);
    await untilPool("demo-mist", "ModelCacheReady", /^False ModelCacheNotReady: .*InUse/);
    await house.untilReady();
    expect(await generationOf("demo-mist")).toBe(before);
    // New settings wait, because pods with them may start at any time later.
    await house.putDeployment(plain, [{ ...mist, env: [{ name: "SOME", value: "value" }] }]);
    await untilPool("demo-mist", "Ready", /^False ModelCacheNotReady: The new settings roll out when/);
    expect(await generationOf("demo-mist")).toBe(before);
    expect(
      (await house.get("PersistentVolumeClaim", "voices-models"))?.metadata.deletionTimestamp,
    ).toBeUndefined();
    await house.putDeployment(plain, [{ ...mist, cache: undefined }]);
    await house.untilGone("TtsModelCache", "voices");
    await house.untilGone("PersistentVolumeClaim", "voices-models");
  });

  it("on two nodes cannot mount a claim of one node, and the condition says so", async () => {
    await fillCache();
    await house.putDeployment(plain, [{ ...mist, replicas: 2 }]);
    await house.serve("demo-api", "demo-mist");
    await untilCache("Mountable", /^True Mountable/);
    const { spec } = await house.workload("demo-mist");
    for (const node of ["a", "b"])
      await house.admin.create({
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          name: `mist-${node}`,
          namespace: house.namespace,
          labels: spec?.template.metadata?.labels ?? {},
        },
        spec: { ...spec?.template.spec, nodeName: `node-${node}` },
      });
    await house.setStatus(await house.workload("demo-mist"), { replicas: 2, readyReplicas: 1 });
    await untilCache("Mountable", /^False SingleNodeClaim: .*nodes node-a, node-b\. .*ReadWriteMany/);
    await untilCache("Ready", /^True/);

    await house.putCache({ sources: [{ url: "https://models.example.com/vera.onnx" }] });
    const fetching = await podOf("voices-fetch-2-0");
    const [term] =
      fetching.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
        ?.nodeSelectorTerms ?? [];
    expect(term?.matchFields).toEqual([
      { key: "metadata.name", operator: "In", values: [expect.stringMatching(/^node-[ab]$/)] },
    ]);
  });
});

describe("the health of a TtsModelCache", () => {
  it("is correct in kstatus and in Argo CD's health check at every stage", async () => {
    const stages: [stage: string, cache: TtsModelCache][] = [];
    const record = async (stage: string) => stages.push([stage, await house.cache()]);
    await house.stopOperator();
    await house.putCache();
    await record("new");
    await house.startOperator(operator);
    await bindClaim();
    await runs("voices-fetch-1-0");
    await untilCache("Ready", /^False Fetching/);
    await record("fetching");
    await ends("voices-fetch-1-0", { outcome: "failed", reason: "DigestMismatch", message: "expected a" });
    await untilCache("Stalled", /^True DigestMismatch/);
    await record("with a failure that needs a user");
    await house.putCache({ sources: [{ url: "https://models.example.com/other.onnx" }] });
    await ends("voices-fetch-2-0", filled);
    await untilCache("Ready", /^True Fetched/);
    await record("filled");
    await house.putDeployment(plain, [mist]);
    await house.until(
      async () => (await house.cache()).status?.users.join() === "demo-mist",
      "the pool is in the status of the cache",
    );
    await house.remove("TtsModelCache", "voices");
    await untilCache("Stalled", /^True InUse/);
    await record("deleted while a pool names it");

    const caches = stages.map(([, cache]) => cache);
    const kstatus = await verdictsOf("kstatus", [], caches);
    const argo = await argoVerdicts("TtsModelCache", caches);
    const statuses = (verdicts: Verdict[]) =>
      verdicts.map(({ status }, index) => [stages[index]?.[0], status]);
    expect(statuses(kstatus)).toEqual([
      ["new", "InProgress"],
      ["fetching", "InProgress"],
      ["with a failure that needs a user", "Failed"],
      ["filled", "Current"],
      ["deleted while a pool names it", "Terminating"],
    ]);
    expect(statuses(argo)).toEqual([
      ["new", "Progressing"],
      ["fetching", "Progressing"],
      ["with a failure that needs a user", "Degraded"],
      ["filled", "Healthy"],
      ["deleted while a pool names it", "Progressing"],
    ]);
    expect(argo.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^No operator/),
      expect.stringMatching(/^Fetching: /),
      expect.stringMatching(/^DigestMismatch: /),
      expect.stringMatching(/^Fetched: /),
      expect.stringMatching(/^InUse: .*demo-mist/),
    ]);
  });
});
