import { afterEach, describe, expect, it, vi } from "vitest";
import { GpuLoad } from "../../../server/telemetry/gpu-load.ts";
import { eventuallyPasses } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type NvidiaSmi, standInNvidiaSmi } from "../../support/server/nvidia-smi.ts";

const told: string[] = [];
const log = {
  info: (_facts: object, message: string) => told.push(message),
  warn: (_facts: object, message: string) => told.push(message),
};
let clock: FakeClock;
let gpus: GpuLoad;

function watch({ folder }: NvidiaSmi): void {
  vi.stubEnv("PATH", folder);
  told.length = 0;
  clock = new FakeClock();
  gpus = new GpuLoad(log, clock);
}

afterEach(() => {
  gpus.close();
  vi.unstubAllEnvs();
});

const until = (fact: () => void) => eventuallyPasses(fact);

function isAlive(pid: number | undefined): boolean {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
}

describe("the load of GPUs", () => {
  it("is the mean of the GPUs that report it, from one process that ends with its reader", async () => {
    using program = standInNvidiaSmi(["31", "[N/A]", "44"]);
    watch(program);
    await until(() => expect(gpus.percent()).toBe(37.5));
    const [pid, ...others] = program.runs();
    expect(others).toEqual([]);
    gpus.close();
    await until(() => expect(isAlive(pid)).toBe(false));
    expect(told).toEqual([]);
  });

  it.each(["[N/A]", "[Unknown Error]", "[GPU is lost]"])(
    "leaves out one that says %s, and is not 0 for it",
    async (load) => {
      using program = standInNvidiaSmi([load, "12"]);
      watch(program);
      await until(() => expect(gpus.percent()).toBe(12));
    },
  );

  it("is absent without nvidia-smi", async () => {
    using nothing = standInNvidiaSmi([]);
    watch(nothing);
    await until(() =>
      expect(told).toEqual(["nvidia-smi is not installed; the metric of the GPU load is absent"]),
    );
    expect(gpus.percent()).toBeUndefined();
  });

  it("is absent after nvidia-smi ended, until a restart with increasing delays", async () => {
    using program = standInNvidiaSmi(["12"]);
    watch(program);
    for (const [runs, pauseMs] of [1_000, 2_000, 4_000].entries()) {
      await until(() => expect(gpus.percent()).toBe(12));
      const pids = program.runs();
      expect(pids).toHaveLength(runs + 1);
      process.kill(pids.at(-1) ?? 0);
      await until(() => expect(gpus.percent()).toBeUndefined());
      await until(() => expect(clock.nextDueMs).toBe(clock.monotonicMs() + pauseMs));
      await clock.advance(pauseMs);
    }
    await until(() => expect(gpus.percent()).toBe(12));
    expect(told).toEqual(["nvidia-smi ended unexpectedly; it is being restarted"]);
  });
});
