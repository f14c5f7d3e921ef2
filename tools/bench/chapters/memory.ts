import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { residentBytes } from "../../../test/support/processes.ts";
import { load, median } from "../common/load.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { percent } from "../common/page.ts";
import { replayRate, replayText } from "../replay/audio.ts";
import { type ApiAlone, replayOptions, startApiAlone } from "./api-alone.ts";

const restAfterMs = 5_000;
const mostRestMegabytes = 250;
const soakMinutes = 10;
/**
 * The number of streams of each format. A stream ends after five seconds and the next stream starts, so that
 * a soak test has thousands of streams.
 */
const soakStreams = 30;
const sampleEveryMs = 2_000;
/**
 * The allowed growth of the memory from the third and fourth minute, after the warm-up, to the last two
 * minutes.
 */
const mostGrowth = 0.1;

/**
 * The results of a soak test. A file keeps the results between runs, because a soak test takes ten minutes.
 */
interface Soak {
  readonly date: string;
  readonly streams: number;
  readonly requests: number;
  /** The median memory of each minute. */
  readonly megabytes: readonly number[];
}

/**
 * Measures the memory of the API tier. `folder` contains the results of the last soak test. `soak` repeats
 * the soak test.
 */
export function memory(folder: string, soak: boolean): Measurement {
  const soakFile = join(folder, "soak.json");
  return {
    name: "Memory of the API tier",
    async measure() {
      const api = await startApiAlone();
      try {
        await sleep(restAfterMs);
        const restMegabytes = megabytesOf(api);
        if (soak) writeFileSync(soakFile, `${JSON.stringify(await runSoak(api), null, 2)}\n`);
        else await speakFor(api, 6);
        const last = existsSync(soakFile) ? (JSON.parse(readFileSync(soakFile, "utf8")) as Soak) : undefined;
        return {
          targets: [restTarget(restMegabytes), ...(last ? [soakTarget(last)] : [])],
          text: page(restMegabytes, megabytesOf(api), last),
        };
      } finally {
        await api.stop();
      }
    },
  };
}

function megabytesOf({ pid }: ApiAlone): number {
  return residentBytes(pid) / 1e6;
}

/** Streams PCM and MP3 in parallel, at real time. Returns the number of complete requests. */
async function speakFor(api: ApiAlone, seconds: number): Promise<number> {
  const plan = { streams: soakStreams, seconds, text: replayText(5, "in time") };
  const mp3 = ["--accept", "audio/mpeg", "--rate", String(replayRate)];
  const runs = await Promise.all([
    load(api, { ...plan, options: replayOptions }),
    load(api, { ...plan, options: [...replayOptions, ...mp3] }),
  ]);
  return runs.reduce((total, { requests }) => total + requests.complete, 0);
}

async function runSoak(api: ApiAlone): Promise<Soak> {
  const megabytes: number[] = [];
  let requests = 0;
  for (let minute = 1; minute <= soakMinutes; minute++) {
    const samples: number[] = [];
    const sampling = setInterval(() => samples.push(megabytesOf(api)), sampleEveryMs);
    requests += await speakFor(api, 60);
    clearInterval(sampling);
    megabytes.push(Math.round(median(samples) * 10) / 10);
    console.log(`    minute ${minute} of ${soakMinutes}: ${megabytes.at(-1)} MB`);
  }
  return { date: new Date().toISOString().slice(0, 10), streams: 2 * soakStreams, requests, megabytes };
}

function restTarget(megabytes: number): TargetRow {
  return {
    what: "memory of the API tier at rest",
    target: `under ${mostRestMegabytes} MB`,
    measured: `${megabytes.toFixed(0)} MB`,
    met: megabytes < mostRestMegabytes,
  };
}

function growthOf({ megabytes }: Soak): number {
  return median(megabytes.slice(-2)) / median(megabytes.slice(2, 4)) - 1;
}

function soakTarget(soak: Soak): TargetRow {
  const growth = growthOf(soak);
  return {
    what: `its growth over ${soak.megabytes.length} minutes of synthesis, the last two compared with the third and fourth`,
    target: `at most ${percent(mostGrowth)}`,
    measured: `${percent(growth)} (${soak.date})`,
    met: growth <= mostGrowth,
  };
}

function page(restMegabytes: number, afterMegabytes: number, soak: Soak | undefined): string {
  const now = `The resident memory is ${restMegabytes.toFixed(0)} MB at rest and ${afterMegabytes.toFixed(0)} MB after synthesis.`;
  if (!soak) return `${now} \`make bench SOAK=1\` measures it over time.`;
  const minutes = soak.megabytes.map((one) => one.toFixed(0)).join(", ");
  return `${now}

On ${soak.date}, ${soak.streams} streams received PCM and MP3 at real time, with ${soak.requests} requests in total. Memory in each minute: ${minutes} MB.`;
}
