import type { Report } from "../../server/bench/report.ts";
import type { Figures, FirstAudioFigures, Machine, ThroughputFigures } from "./figures.ts";

const targets = { firstAudioExtraMs: 15, throughputShare: 0.85, apiRestMegabytes: 250 };

/** `docs/benchmarks.md`, whole. */
export function benchmarksDocument(figures: Figures): string {
  return `# Benchmarks

\`\`\`sh
make bench
\`\`\`

writes this page and its plot. ${machineSentence(figures.machine)} The load tool and the
server share it, so compare within one run only: every figure with a target stands beside what it is compared with, measured in turn.

## Targets

${table(["what", "target", "measured", "met"], targetRows(figures))}

Not measured yet: streams per core of the API tier alone, MP3 against the bare encoder, ten minutes of memory, twice the capacity, and
peers (Piper's HTTP server) side by side.

## Streams

Voice \`alan\` of \`mist\`, raw PCM at 16 kHz, sentences as voice agents say them. Every stream asks again as soon as it has ended and reads as
fast as it can, so that more than one stream is full load: its first audio is time in the queue for an engine.

![First audio and starvation by number of streams](benchmarks/streams.svg)

${table(["streams", "complete", "failed", "first audio p50 / p95 / p99", "real-time factor p50", "starved over 100 ms", "audio per second"], figures.loads.map(loadRow))}

## First audio

A text of ${figures.firstAudio.textCharacters} characters, one stream, ${figures.firstAudio.rounds} rounds; medians. The engine alone is asked for the phrase that the server speaks first.

${table(["answer", "first audio", "more than the engine"], firstAudioRows(figures.firstAudio))}

## Throughput

${figures.throughput.streams} streams of raw PCM, against the same engine processes driven without HTTP, in turn.

${table(["window", "engines alone", "through the server", "share"], throughputRows(figures.throughput))}

Where the processor time of a hundred seconds of served audio went:

${table(
  ["process", "seconds"],
  figures.throughput.processorShares.map(({ name, seconds }) => [name, seconds.toFixed(2)]),
)}
`;
}

function machineSentence({ processor, cores, memoryBytes, node, kernel, loadBefore }: Machine): string {
  const memory = `${(memoryBytes / 2 ** 30).toFixed(0)} GiB of memory`;
  const others = `busy with ${loadBefore.toFixed(1)} other tasks on average in the minute before`;
  return `This run: ${cores} cores (${processor}), ${memory}, Linux ${kernel}, Node ${node}, ${others}.`;
}

function targetRows({ firstAudio, throughput, apiMemory }: Figures): string[][] {
  const worst = firstAudio.variants.reduce((a, b) => (b.ms > a.ms ? b : a));
  const extraMs = worst.ms - firstAudio.engineMs;
  const share = servedShare(throughput);
  const megabytes = apiMemory.atRestBytes / 1e6;
  return [
    [
      "first audio of a long text beyond the engine's own first chunk, slowest answer",
      `at most ${targets.firstAudioExtraMs} ms`,
      `${extraMs.toFixed(1)} ms (${worst.name})`,
      met(extraMs <= targets.firstAudioExtraMs),
    ],
    [
      `throughput at ${throughput.streams} streams against the engines without HTTP`,
      `at least ${percent(targets.throughputShare)}`,
      percent(share),
      met(share >= targets.throughputShare),
    ],
    [
      "memory of the API tier at rest",
      `under ${targets.apiRestMegabytes} MB`,
      `${megabytes.toFixed(0)} MB (${(apiMemory.afterLoadBytes / 1e6).toFixed(0)} MB after the load)`,
      met(megabytes < targets.apiRestMegabytes),
    ],
  ];
}

/** Of the means of all windows: each side ran as long as the other. */
function servedShare({ pairs }: ThroughputFigures): number {
  const sum = (side: "alone" | "served") => pairs.reduce((total, pair) => total + pair[side], 0);
  return sum("served") / sum("alone");
}

function loadRow(run: Report): string[] {
  const times = run.firstAudioMs;
  return [
    String(run.streams),
    String(run.requests.complete),
    String(run.requests.failed),
    times ? `${[times.p50, times.p95, times.p99].map((ms) => ms.toFixed(0)).join(" / ")} ms` : "none",
    run.realTimeFactor?.p50.toFixed(3) ?? "none",
    run.playback.starvedShare === undefined ? "none" : percent(run.playback.starvedShare),
    `${(run.audioSecondsPerSecond ?? 0).toFixed(0)} s`,
  ];
}

function firstAudioRows({ engineMs, variants }: FirstAudioFigures): string[][] {
  const alone = ["engine alone", `${engineMs.toFixed(1)} ms`, ""];
  return [
    alone,
    ...variants.map(({ name, ms }) => [name, `${ms.toFixed(1)} ms`, `${(ms - engineMs).toFixed(1)} ms`]),
  ];
}

function throughputRows({ pairs }: ThroughputFigures): string[][] {
  return pairs.map(({ alone, served }, i) => [
    String(i + 1),
    `${alone.toFixed(1)} s/s`,
    `${served.toFixed(1)} s/s`,
    percent(served / alone),
  ]);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

function met(yes: boolean): string {
  return yes ? "yes" : "no";
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
