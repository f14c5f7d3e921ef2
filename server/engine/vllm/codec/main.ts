/**
 * A codec process, which decodes windows of codes. `codec-pool.ts` owns it, and it ends together with its
 * owner.
 */

import { toInt16 } from "../../neural/int16.ts";
import type { CodecAnswer, CodecJob, CodecSpec, SampleRange } from "./codec-job.ts";
import { Decoder } from "./decoder.ts";

const spec = JSON.parse(process.argv[2] ?? "null") as CodecSpec;
process.on("disconnect", () => process.exit());

const decoder = await tryLoad();
if (decoder) {
  process.on("message", (job: CodecJob) => void decode(decoder, job));
  tell({ kind: "ready", cost: await cost(decoder) });
}

async function tryLoad(): Promise<Decoder | undefined> {
  try {
    return await Decoder.load(spec);
  } catch (error) {
    tell({ kind: "refused", message: error instanceof Error ? error.message : String(error) });
    return undefined;
  }
}

async function decode(loaded: Decoder, { id, windows }: CodecJob): Promise<void> {
  try {
    const whole = await loaded.decode(windows.map(({ frames }) => frames));
    const audio = windows.map(({ wanted }, i) => toInt16(cut(whole[i], wanted)));
    tell({ kind: "decoded", id, audio });
  } catch (error) {
    tell({ kind: "failed", id, message: String(error) });
  }
}

function cut(samples: Float32Array = new Float32Array(), { first, end }: SampleRange): Float32Array {
  return samples.subarray(first, end);
}

/** The best of three measurements, because other work on the machine does not count. */
async function cost(loaded: Decoder): Promise<number> {
  const { left, right, hops, rate, frameSamples, slots } = spec.codec;
  const heard = hops.at(-1) ?? 1;
  const frame = new Array<number>(slots.length).fill(0);
  const window = new Array<number[]>(left + heard + right).fill(frame);
  let best = Number.POSITIVE_INFINITY;
  for (let take = 0; take < 3; take++) {
    const startedAt = performance.now();
    await loaded.decode([window]);
    best = Math.min(best, (performance.now() - startedAt) / 1000);
  }
  return best / ((heard * frameSamples) / rate);
}

function tell(answer: CodecAnswer): void {
  process.send?.(answer);
}
