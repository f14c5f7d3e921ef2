import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { Utterance } from "../../../server/contract/speech.ts";
import { EngineSpeed, realTimeStreamsAt } from "../../../server/engine/neural/real-time.ts";
import { type FinishedUtterance, ProcessPool } from "../../../server/engine/runtime/process-pool.ts";

const file = fileURLToPath(new URL("../../support/engine-programs/main.ts", import.meta.url));
const quiet = { info: () => undefined, warn: () => undefined };
const never = new AbortController().signal;
const pools: ProcessPool[] = [];

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close();
});

/** Starts processes that synthesize a tenth of a second, or without an end for the text `on`. */
async function start(
  processes: number,
  onFinished: (utterance: FinishedUtterance) => void,
  more: { readonly argsAlone?: readonly string[] } = {},
): Promise<ProcessPool> {
  const program = { name: "numbers", rate: 8_000, file, args: ["telling", "1"], ...more };
  const pool = await ProcessPool.open(program, { processes, log: quiet }, onFinished);
  pools.push(pool);
  return pool;
}

function frames(pool: ProcessPool, text: string, signal = never) {
  const tokens = [{ text, before: "", after: "", stretch: 1 }];
  const utterance: Utterance = { voice: { kind: "neural", speaker: 0 }, tokens, stretch: 1 };
  return pool.speak(utterance, signal);
}

async function speak(pool: ProcessPool): Promise<void> {
  for await (const _frame of frames(pool, "once"));
}

describe("the speed of an engine that was measured as 0.5", () => {
  it.each([
    ["the only process", 1, {}],
    ["one of two processes", 2, {}],
    ["the multi-threaded process", 2, { argsAlone: ["telling", "2"] }],
  ] as const)("rises while a single stream uses %s", async (_what, processes, more) => {
    const speed = new EngineSpeed(processes, 1);
    speed.measured(0.5);
    const pool = await start(processes, (utterance) => speed.phraseFinished(utterance), more);
    for (let i = 0; i < 60; i++) await speak(pool);
    const audioSpeed = speed.current?.audioSpeed ?? 0;
    expect(realTimeStreamsAt({ audioSpeed, processes })).toBeGreaterThan(1);
  });
});

describe("a finished utterance", () => {
  it("has the number of processes that were busy during all of it", async () => {
    const finished: FinishedUtterance[] = [];
    const pool = await start(2, (utterance) => finished.push(utterance));
    await speak(pool);
    const stop = new AbortController();
    const endless = frames(pool, "on", stop.signal);
    await endless.next();
    await speak(pool);
    stop.abort();
    await endless.next();
    expect(finished).toEqual([
      { audioSeconds: 0.1, workSeconds: expect.any(Number), leastBusy: 1, isMultiThreaded: false },
      { audioSeconds: 0.1, workSeconds: expect.any(Number), leastBusy: 2, isMultiThreaded: false },
    ]);
  });

  it("of the multi-threaded process is marked", async () => {
    const finished: FinishedUtterance[] = [];
    const pool = await start(2, (utterance) => finished.push(utterance), { argsAlone: ["telling", "2"] });
    await speak(pool);
    expect(finished).toEqual([
      { audioSeconds: 0.1, workSeconds: expect.any(Number), leastBusy: 0, isMultiThreaded: true },
    ]);
  });
});
