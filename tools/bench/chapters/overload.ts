import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { env as names } from "../../../config/contract/names.ts";
import { runLoad } from "../../../server/bench/load.ts";
import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import { starvedAboveMs } from "../../../server/bench/report.ts";
import { measureStream, type StreamRecord } from "../../../server/bench/stream.ts";
import type { Target } from "../../../server/bench/target.ts";
import { defaultTexts } from "../../../server/bench/texts.ts";
import type { Served } from "../common/load.ts";
import type { Measurement, TargetResult, TargetRow } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";
import { startServer } from "../common/running-server.ts";
import { longText, usualTarget } from "./first-audio.ts";

/** The number of streams that the model tier synthesizes concurrently. The queue has the same length. */
const capacity = 16;
const seconds = 12;
/**
 * The number of concurrent requests with long texts. Half of them run, and the other half waits in the queue.
 */
const filling = 2 * capacity;
/** The number of requests that are then sent one after another, while the queue is full. */
const refusedCallers = 50;
const fullAfterMs = 500;
const deadlineMs = 5_000;
/**
 * The allowed time from the start of a stream to its first audio, with the delay of timers on a busy machine.
 */
const graceMs = 250;
const mostRefusalMs = 50;

/** Measures a server at twice its capacity. The server is separate, and its capacity is small. */
export const overload: Measurement = {
  name: "Twice the capacity",
  async measure() {
    const server = await startServer({ [names.maxConcurrentStreams]: String(capacity) });
    try {
      const target = { ...usualTarget, accept: "audio/pcm", eventFormat: "pcm", rate: 16_000 } as const;
      await loadWith(server, target, capacity / 2, 4); // This load warms up the compiled code.
      const steady = await loadWith(server, target, 2 * capacity, seconds);
      return finding(steady, await fill(server, target));
    } finally {
      await server.stop();
    }
  },
};

type Form = Omit<Target, "url" | "key">;

async function loadWith({ url, key }: Served, form: Form, streams: number, forSeconds: number) {
  console.log(`    ${streams} callers for ${forSeconds} s`);
  const target = { ...form, texts: defaultTexts, url, key };
  const { records } = await runLoad(target, { streams, seconds: forSeconds }, new AbortController().signal);
  return records;
}

interface Full {
  /** The requests that run, and the requests that wait in the queue. */
  readonly filling: readonly StreamRecord[];
  readonly late: readonly StreamRecord[];
}

async function fill({ url, key }: Served, form: Form): Promise<Full> {
  console.log(`    ${filling} callers at once, then ${refusedCallers} in turn`);
  const agent = new Agent({ pipelining: 1 });
  const send = () => measureStream(agent, { ...form, url, key }, longText, AbortSignal.timeout(60_000));
  const first = Array.from({ length: filling }, send);
  await sleep(fullAfterMs);
  const late: StreamRecord[] = [];
  while (late.length < refusedCallers) late.push(await send());
  const records = await Promise.all(first);
  await agent.close();
  return { filling: records, late };
}

const isRefusal = ({ code }: StreamRecord) => code === "saturated";

function finding(steady: readonly StreamRecord[], full: Full): TargetResult {
  const stalls = ascending(steady.flatMap(({ stallMs }) => stallMs ?? []));
  const refusals = ascending(full.late.filter(isRefusal).map(({ wallMs }) => wallMs));
  const completed = full.filling.filter(({ outcome }) => outcome === "complete");
  const expired = full.filling.filter(isRefusal);
  const waits = [
    ...completed.map(({ firstAudioMs }) => firstAudioMs ?? 0),
    ...expired.map(({ wallMs }) => wallMs),
  ];
  const figures = {
    stallMs: quantile(stalls, 0.99),
    refusalMs: quantile(refusals, 0.99),
    longestMs: Math.max(...waits),
    answered: waits.length,
  };
  return {
    targets: targets(figures),
    text: `The server has a capacity of ${capacity} streams and a queue of the same length. First ${2 * capacity} clients send requests for ${seconds} s, each as soon as its previous response has ended. Then ${filling} clients send a text of
${longText.length} characters at the same time. While these requests run and wait, ${refusedCallers} more clients send requests one after another.

${markdownTable(
  ["clients", "streams", "failed", "gaps p50 / p99"],
  [
    [
      String(2 * capacity),
      String(steady.length),
      String(steady.filter(({ outcome }) => outcome === "failed").length),
      `${quantile(stalls, 0.5).toFixed(0)} / ${figures.stallMs.toFixed(0)} ms`,
    ],
  ],
)}

${markdownTable(
  [
    "at once",
    "served",
    "rejected at the deadline",
    "more clients",
    "rejected by the full queue",
    "in p50 / p99",
  ],
  [
    [
      String(filling),
      String(completed.length),
      String(expired.length),
      String(refusedCallers),
      String(refusals.length),
      `${quantile(refusals, 0.5).toFixed(0)} / ${figures.refusalMs.toFixed(0)} ms`,
    ],
  ],
)}`,
  };
}

interface Figures {
  readonly stallMs: number;
  readonly refusalMs: number;
  readonly longestMs: number;
  readonly answered: number;
}

function targets({ stallMs, refusalMs, longestMs, answered }: Figures): TargetRow[] {
  return [
    {
      what: "accepted streams at twice the capacity: gaps in the audio, p99",
      target: `at most ${starvedAboveMs} ms`,
      measured: `${stallMs.toFixed(0)} ms`,
      met: stallMs <= starvedAboveMs,
    },
    {
      what: "rejection by a full queue, p99",
      target: `under ${mostRefusalMs} ms`,
      measured: `${refusalMs.toFixed(0)} ms`,
      met: refusalMs < mostRefusalMs,
    },
    {
      what: "longest time from a request to its first audio, or to its rejection at the deadline",
      target: `at most ${deadlineMs} ms, plus ${graceMs} ms for the first audio`,
      measured: `${longestMs.toFixed(0)} ms (${answered} of ${filling} responses)`,
      met: longestMs <= deadlineMs + graceMs && answered === filling,
    },
  ];
}
