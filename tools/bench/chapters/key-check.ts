import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Agent } from "undici";
import { requireScope } from "../../../server/api/access/authenticate.ts";
import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import { measureStream } from "../../../server/bench/stream.ts";
import { createKey, digestKey } from "../../../server/store/keys/key.ts";
import { joinStores, KeyIndex } from "../../../server/store/keys/key-store.ts";
import { median, spentBy } from "../common/load.ts";
import type { Measurement, TargetResult } from "../common/measurement.ts";
import { openLoop } from "../common/open-loop.ts";
import { markdownTable } from "../common/page.ts";
import { replayRate, replayText } from "../replay/audio.ts";
import { type ApiAlone, startApiAlone } from "./api-alone.ts";

const floodProgram = fileURLToPath(new URL("../wrong-keys/main.ts", import.meta.url));

const knownKeys = 10_000;
const checks = 100_000;
const mostAddedMs = 0.2;

const wrongPerSecond = 1_000;
const rightPerSecond = 60;
const pairs = 3;
const windowSeconds = 8;
/** The seconds for which requests with wrong keys run before and after the concurrent measurement. */
const marginSeconds = 1;
const mostRatio = 1.25;

/** Measures the cost of checking API keys, and the effect of requests with unknown keys on other clients. */
export const keyCheck: Measurement = {
  name: "Key check",
  async measure() {
    const right = await timeChecks(createKeys());
    const wrong = await timeChecks([createKey()], createKeys());
    const api = await startApiAlone();
    try {
      await listen(api, 3); // This load warms up the compiled code.
      await flood(api, 3);
      const refusal = await refusalCost(api);
      const windows = await compare(api);
      return finding({ right, wrong, refusal, windows });
    } finally {
      await api.stop();
    }
  },
};

function createKeys(): string[] {
  return Array.from({ length: knownKeys }, createKey);
}

interface Times {
  readonly p50: number;
  readonly p99: number;
}

/**
 * Measures the time of the hook that checks the key of every request, in milliseconds. The key store is like
 * the key store of a server with a file and a database. `known` are the keys with digests in the store, by
 * default `keys`.
 */
async function timeChecks(keys: readonly string[], known = keys): Promise<Times> {
  const entries = known.map((key, i) => ({
    ...{ id: `${i}`, name: `key ${i}`, scopes: ["tts:write"] as const, sha256: digestKey(key) },
  }));
  const half = entries.length / 2;
  const [file, table] = [new KeyIndex(entries.slice(0, half)), new KeyIndex(entries.slice(half))];
  const store = joinStores([file, table].map((index) => ({ find: async (digest) => index.find(digest) })));
  const check = requireScope(store, "tts:write", Date.now);
  const reply = { header: () => reply } as unknown as FastifyReply;
  const times: number[] = [];
  for (let i = 0; i < checks; i++) {
    const request = { headers: { authorization: `Bearer ${keys[i % keys.length]}` } } as FastifyRequest;
    const startedAt = performance.now();
    await check(request, reply).catch(() => undefined); // The hook rejects a wrong key.
    times.push(performance.now() - startedAt);
  }
  const sorted = ascending(times);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

/** Returns the duration of each request with a known key in milliseconds. */
async function listen({ url, key }: ApiAlone, seconds: number): Promise<number[]> {
  const agent = new Agent({ pipelining: 1 });
  const form = { shape: "svc-tts", model: "arcana", voice: "luna", texts: [] } as const;
  const target = { ...form, accept: "audio/pcm", eventFormat: "pcm", rate: replayRate, url, key } as const;
  const text = replayText(1, "at once");
  const records = await openLoop(rightPerSecond, seconds, () =>
    measureStream(agent, target, text, AbortSignal.timeout(30_000)),
  );
  await agent.close();
  const failed = records.find(({ outcome }) => outcome !== "complete");
  if (failed) throw new Error(`a request with a known key failed: ${failed.code ?? failed.outcome}`);
  return records.map(({ wallMs }) => wallMs);
}

/** Sends requests with wrong keys from a separate process. Returns the number of rejected requests. */
async function flood({ url }: ApiAlone, seconds: number): Promise<number> {
  const words = [floodProgram, url, String(wrongPerSecond), String(seconds)];
  const { stdout } = await promisify(execFile)(process.execPath, words);
  const refused = Number(stdout);
  if (refused !== wrongPerSecond * seconds)
    throw new Error(`only ${refused} of ${wrongPerSecond * seconds} requests with wrong keys were rejected`);
  return refused;
}

/** Returns the CPU time of the API tier for each rejected request in microseconds, including HTTP. */
async function refusalCost(api: ApiAlone): Promise<number> {
  const idle = await spentBy([api.pid], () => sleep(windowSeconds * 1000));
  const busy = await spentBy([api.pid], () => flood(api, windowSeconds));
  return (((busy.seconds[0] ?? 0) - (idle.seconds[0] ?? 0)) / busy.result) * 1e6;
}

interface Window {
  /** The durations in milliseconds, without and with concurrent requests with wrong keys. */
  readonly alone: Times;
  readonly beside: Times;
}

async function compare(api: ApiAlone): Promise<Window[]> {
  const windows: Window[] = [];
  for (let i = 1; i <= pairs; i++) {
    console.log(`    pair ${i} of ${pairs}`);
    const alone = timesOf(await listen(api, windowSeconds));
    const flooding = flood(api, windowSeconds + 2 * marginSeconds);
    await sleep(marginSeconds * 1000);
    const beside = timesOf(await listen(api, windowSeconds));
    await flooding;
    windows.push({ alone, beside });
  }
  return windows;
}

function timesOf(milliseconds: readonly number[]): Times {
  const sorted = ascending(milliseconds);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

interface Measured {
  readonly right: Times;
  readonly wrong: Times;
  readonly refusal: number;
  readonly windows: readonly Window[];
}

function finding({ right, wrong, refusal, windows }: Measured): TargetResult {
  const ratio = median(windows.map(({ alone, beside }) => beside.p99 / alone.p99));
  const microseconds = (ms: number) => `${(ms * 1000).toFixed(1)} µs`;
  const both = ({ p50, p99 }: Times) => `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`;
  return {
    targets: [
      {
        what: "time that the key check adds to a request, p99",
        target: `less than ${mostAddedMs} ms`,
        measured: `${right.p99.toFixed(3)} ms`,
        met: right.p99 < mostAddedMs,
      },
      {
        what: `response time with right keys, with ${wrongPerSecond} wrong ones per second relative to none, p99`,
        target: `at most ${mostRatio}`,
        measured: ratio.toFixed(2),
        met: ratio <= mostRatio,
      },
    ],
    text: `The table has the time of the key check of a request, measured ${checks} times with ${knownKeys} keys in two stores:

${markdownTable(
  ["key", "p50", "p99"],
  [
    ["right", microseconds(right.p50), microseconds(right.p99)],
    ["wrong, but well formed", microseconds(wrong.p50), microseconds(wrong.p99)],
  ],
)}

A request with a wrong key takes ${refusal.toFixed(0)} µs of the API tier's CPU time, including HTTP and the response.

The API tier served ${rightPerSecond} requests per second with a right key, each for a second of audio from a model that replays a recording. Then it served the same requests while a process on the same machine sent ${wrongPerSecond} requests per second with
wrong keys. The table has the time from sending a request to the end of the response:

${markdownTable(
  ["pair", "without p50 / p99", "with wrong keys p50 / p99", "ratio of p99"],
  windows.map(({ alone, beside }, i) => [
    String(i + 1),
    both(alone),
    both(beside),
    (beside.p99 / alone.p99).toFixed(2),
  ]),
)}`,
  };
}
