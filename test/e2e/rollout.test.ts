/** Nothing that rolls, drains or scales cuts a stream; a canary is judged under load; full GPUs hold no rollout up. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { Kubectl, run } from "../support/real-cluster.ts";
import { arcana, mist, ttsDeployment, World } from "../support/world.ts";

const name = "roll";
const cluster = inject("cluster");
const world = new World({ cluster, namespace: "e2e-rollout" });
const { kubectl } = world;
const system = new Kubectl("svc-tts-system");
const gpusScript = fileURLToPath(new URL("../cluster/gpus.sh", import.meta.url));
const streams = 16;
/** Long enough that streams run while pods go. */
const text =
  "Every one of these words is heard to its end, whatever happens to the pod that speaks it. ".repeat(5);
const words = { text, speaker: "alan", modelId: "mist" };

beforeAll(async () => {
  await world.open();
  await world.license(30);
  await kubectl.apply(ttsDeployment(name, { models: [mist({ replicas: 2 })] }));
  await world.condition(name, "Ready", "True");
});
afterAll(async () => {
  if (cluster.isLocal) execFileSync(gpusScript, ["4"]);
  await world.close();
});

async function setModels(...models: object[]): Promise<void> {
  await kubectl.do("patch", "ttsd", name, "--type=merge", "-p", JSON.stringify({ spec: { models } }));
}

async function pods(pool: string): Promise<string[]> {
  const found = await everyPod(pool);
  return found.filter(({ metadata }) => !metadata.deletionTimestamp).map(({ metadata }) => metadata.name);
}

/** Also those that are on their way out. */
function everyPod(pool: string) {
  return kubectl.list("pods", `tts.svc.dev/deployment=${name},tts.svc.dev/pool=${pool}`);
}

async function allNew(pool: string, before: readonly string[], count: number): Promise<void> {
  await eventually(
    `${count} new pods of ${pool}`,
    async () => {
      const now = await pods(pool);
      const ready = (await kubectl.get("ttsmp", `${name}-${pool}`))?.status?.readyReplicas;
      return now.length === count && ready === count && now.every((pod) => !before.includes(pod));
    },
    { seen: async () => (await kubectl.get("ttsmp", `${name}-${pool}`))?.status },
  );
}

/** Does something while 16 streams speak. @returns how many were answered */
async function uncut(what: string, act: () => Promise<void>): Promise<number> {
  const load = world.load(name, words, { streams });
  await load.speaking();
  await act();
  const report = await load.stop();
  console.info(`${what}: ${report.ok} streams spoken, ${report.failures.length} cut or failed`);
  expect(report.failures).toEqual([]);
  expect(report.ok).toBeGreaterThanOrEqual(streams);
  return report.ok;
}

describe("under 16 streams nothing is cut or fails", () => {
  it("while a pool is rolled", async () => {
    const before = await pods("mist");
    await uncut("rolling update", async () => {
      await kubectl.do(
        "annotate",
        "ttsmp",
        `${name}-mist`,
        "--overwrite",
        `tts.svc.dev/restart=${Date.now()}`,
      );
      await allNew("mist", before, 2);
    });
  });

  it("while the node is drained of its pods, one after the other, as its budget lets them", async () => {
    const before = await pods("mist");
    await uncut("drain", async () => {
      for (const pod of before) {
        const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod } };
        const path = `/api/v1/namespaces/${kubectl.namespace}/pods/${pod}/eviction`;
        await eventually(`the eviction of ${pod}`, async () => {
          const ran = await run("kubectl", ["create", "--raw", path, "-f", "-"], JSON.stringify(eviction));
          if (ran.code !== 0 && !ran.stderr.includes("disruption budget")) throw new Error(ran.stderr);
          return ran.code === 0;
        });
      }
      await allNew("mist", before, 2);
    });
  });

  it("while the operator is replaced, and it rolls none of their pods", async () => {
    const before = (await pods("mist")).sort();
    await uncut("operator upgrade", async () => {
      const [deployment] = await system.list("deployments", "app.kubernetes.io/name=tts-operator");
      const operator = `deployment/${deployment?.metadata.name}`;
      await system.do("rollout", "restart", operator);
      await system.do("rollout", "status", operator, "--timeout=120s");
      await world.condition(name, "Ready", "True");
    });
    expect((await pods("mist")).sort()).toEqual(before);
  });

  it("while a pool is scaled down", async () => {
    await uncut("scale-down", async () => {
      await setModels(mist({ replicas: 1 }));
      await eventually("one pod", async () => (await everyPod("mist")).length === 1);
    });
    await setModels(mist({ replicas: 2 }));
    await world.condition(name, "Ready", "True");
  });
});

describe("a canary under load", () => {
  const analysis = { intervalSeconds: 2, minRequests: 20, maxErrorPercent: 5 };
  const rollout = {
    progressDeadlineSeconds: 60,
    canary: {
      steps: [
        { weight: 30, pauseSeconds: 5 },
        { weight: 60, pauseSeconds: 5 },
      ],
      analysis,
    },
  };
  const canaried = (more: object = {}) => mist({ replicas: 2, rollout, ...more });
  const phase = async () =>
    (await kubectl.get("ttsmp", `${name}-mist`))?.status?.canary?.phase as string | undefined;
  /** Ready, and fails whatever it is asked. */
  const broken = {
    podTemplate: {
      spec: {
        containers: [
          {
            name: "mist",
            command: [
              "node",
              "-e",
              `require("node:http").createServer((q, a) => q.method === "POST" ? a.writeHead(500).end() : a.end("pong")).listen(8080); process.on("SIGTERM", () => process.exit())`,
            ],
            args: [],
          },
        ],
      },
    },
  };

  it("that is bad is rolled back, and no caller hears of it", async () => {
    await setModels(canaried());
    await world.condition(name, "Ready", "True");
    const before = (await pods("mist")).sort();
    await uncut("bad canary", async () => {
      await setModels(canaried(broken));
      await eventually("its end", async () => (await phase()) === "RolledBack", {
        seen: async () => (await kubectl.get("ttsmp", `${name}-mist`))?.status,
      });
    });
    const found = await world.condition(name, "RolloutHealthy", "False");
    expect(found).toMatchObject({
      reason: "CanaryErrors",
      message: expect.stringContaining("streams failed"),
    });
    expect((await pods("mist")).sort()).toEqual(before);
    await eventually("its pods to be gone", async () => (await pods("mist-canary")).length === 0);
  });

  it("that is good is promoted", async () => {
    const before = await pods("mist");
    await uncut("good canary", async () => {
      await setModels(canaried({ env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] }));
      await eventually("its share", async () => (await phase()) === "Analysing");
      await allNew("mist", before, 2);
    });
    await world.condition(name, "Ready", "True");
    await eventually("its pods to be gone", async () => (await pods("mist-canary")).length === 0);
  });
});

describe("a rollout where every GPU is taken", () => {
  const one = (whenFull: string, more: object = {}) =>
    arcana({ replicas: 2, rollout: { whenFull, maxSurge: 1, maxUnavailable: 0 }, ...more });
  const debug = { env: [{ name: "SVC_TTS_LOG_LEVEL", value: "debug" }] };

  it("without the trade does not end", async () => {
    execFileSync(gpusScript, ["2"]);
    await setModels(one("Wait"));
    await world.condition(name, "Ready", "True");
    const before = await pods("arcana");
    await setModels(one("Wait", debug));
    await world.condition(name, "ModelsReady", "False", /Insufficient nvidia\.com\/gpu/);
    await new Promise((resolve) => setTimeout(resolve, 30_000));
    expect((await pods("arcana")).filter((pod) => before.includes(pod)).sort()).toEqual(before.sort());
  });

  it("with the trade ends, and cuts no stream", async () => {
    const before = await pods("arcana");
    const report = world.load(name, { text, speaker: "luna", modelId: "arcana" }, { streams: 4 });
    await setModels(one("Trade", debug));
    await eventually(
      "two pods, none of the old ones",
      async () => {
        const now = await kubectl.list("pods", `tts.svc.dev/deployment=${name},tts.svc.dev/pool=arcana`);
        const env = JSON.stringify(now.map(({ spec }) => spec.containers[0].env));
        const ready = (await kubectl.get("ttsmp", `${name}-arcana`))?.status?.readyReplicas;
        return now.length === 2 && ready === 2 && env.split('"debug"').length === 3;
      },
      { seen: async () => (await kubectl.get("ttsmp", `${name}-arcana`))?.status },
    );
    const { ok, failures } = await report.stop();
    console.info(
      `GPU-full rollout of ${before.length} pods: ${ok} streams spoken, ${failures.length} cut or failed`,
    );
    expect(failures).toEqual([]);
    const live = await kubectl.get("deployment", `${name}-arcana`);
    await eventually("the trade to be over", async () => {
      const { spec } = (await kubectl.get("deployment", `${name}-arcana`)) ?? live ?? {};
      return spec.strategy.rollingUpdate.maxUnavailable === 0;
    });
  });
});
