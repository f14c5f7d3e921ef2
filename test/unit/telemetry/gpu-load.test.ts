import { afterEach, describe, expect, it, vi } from "vitest";
import { GpuLoad } from "../../../server/telemetry/gpu-load.ts";
import { eventuallyPasses } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type NvidiaSmi, standInNvidiaSmi } from "../../support/server/nvidia-smi.ts";

const messages: string[] = [];
const log = {
  info: (_facts: object, message: string) => messages.push(message),
  warn: (_facts: object, message: string) => messages.push(message),
};
let clock: FakeClock;
let gpus: GpuLoad;

function watch({ folder }: NvidiaSmi): void {
  vi.stubEnv("PATH", folder);
  messages.length = 0;
  clock = new FakeClock();
  gpus = new GpuLoad(log, clock);
}

afterEach(() => {
  gpus.close();
  vi.unstubAllEnvs();
});

const eventuallyTrue = (fact: () => void) => eventuallyPasses(fact);

function isAlive(pid: number | undefined): boolean {
  try {
    return process.kill(pid ?? 0, 0);
  } catch {
    return false;
  }
}

describe("the load of GPUs", () => {
  it("is the mean of all GPUs that report a load, read from one process that close() ends", async () => {
    using program = standInNvidiaSmi(["31", "[N/A]", "44"]);
    watch(program);
    await eventuallyTrue(() => expect(gpus.percent()).toBe(37.5));
    const [pid, ...others] = program.runs();
    expect(others).toEqual([]);
    gpus.close();
    await eventuallyTrue(() => expect(isAlive(pid)).toBe(false));
    expect(messages).toEqual([]);
  });

  it.each(["[N/A]", "[Unknown Error]", "[GPU is lost]"])("ignores a GPU that reports %s", async (load) => {
    using program = standInNvidiaSmi([load, "12"]);
    watch(program);
    await eventuallyTrue(() => expect(gpus.percent()).toBe(12));
  });

  it("is undefined without nvidia-smi", async () => {
    using nothing = standInNvidiaSmi([]);
    watch(nothing);
    await eventuallyTrue(() =>
      expect(messages).toEqual(["nvidia-smi is not installed; the metric of the GPU load is absent"]),
    );
    expect(gpus.percent()).toBeUndefined();
  });

  it("is undefined after nvidia-smi ends, until it is restarted after an increasing delay", async () => {
    using program = standInNvidiaSmi(["12"]);
    watch(program);
    for (const [runs, pauseMs] of [1_000, 2_000, 4_000].entries()) {
      await eventuallyTrue(() => expect(gpus.percent()).toBe(12));
      const pids = program.runs();
      expect(pids).toHaveLength(runs + 1);
      process.kill(pids.at(-1) ?? 0);
      await eventuallyTrue(() => expect(gpus.percent()).toBeUndefined());
      await eventuallyTrue(() => expect(clock.nextDueMs).toBe(clock.monotonicMs() + pauseMs));
      await clock.advance(pauseMs);
    }
    await eventuallyTrue(() => expect(gpus.percent()).toBe(12));
    expect(messages).toEqual(["nvidia-smi ended unexpectedly; it is being restarted"]);
  });
});
