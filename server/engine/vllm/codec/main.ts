/**
 * The codec process, which decodes windows of codes. `codec-pool.ts` starts this process. The process ends
 * when its owner disconnects.
 */

import { toInt16 } from "../../neural/int16.ts";
import type { CodecAnswer, CodecJob, CodecSpec, SampleRange } from "./codec-job.ts";
import { Decoder } from "./decoder.ts";

const spec = JSON.parse(process.argv[2] ?? "null") as CodecSpec;
process.on("disconnect", () => process.exit());

const decoder = await tryLoad();
if (decoder) {
  process.on("message", (job: CodecJob) => void decode(decoder, job));
  send({ kind: "ready", cost: await measureCost(decoder) });
}

async function tryLoad(): Promise<Decoder | undefined> {
  try {
    return await Decoder.load(spec);
  } catch (error) {
    send({ kind: "refused", message: error instanceof Error ? error.message : String(error) });
    return undefined;
  }
}

async function decode(loaded: Decoder, { id, windows }: CodecJob): Promise<void> {
  try {
    const whole = await loaded.decode(windows.map(({ frames }) => frames));
    const audio = windows.map(({ wanted }, i) => toInt16(cut(whole[i], wanted)));
    send({ kind: "decoded", id, audio });
  } catch (error) {
    send({ kind: "failed", id, message: String(error) });
  }
}

function cut(samples: Float32Array = new Float32Array(), { first, end }: SampleRange): Float32Array {
  return samples.subarray(first, end);
}

/**
 * Measures the seconds of work for each second of audio. The best of three measurements excludes most of the
 * other work on the machine.
 */
async function measureCost(loaded: Decoder): Promise<number> {
  const { left, right, hops, rate, frameSamples, slots } = spec.codec;
  const audible = hops.at(-1) ?? 1;
  const frame = new Array<number>(slots.length).fill(0);
  const window = new Array<number[]>(left + audible + right).fill(frame);
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3; attempt++) {
    const startedAt = performance.now();
    await loaded.decode([window]);
    best = Math.min(best, (performance.now() - startedAt) / 1000);
  }
  return best / ((audible * frameSamples) / rate);
}

function send(answer: CodecAnswer): void {
  process.send?.(answer);
}
