import { Agent } from "undici";
import { measureStream } from "../../../server/bench/stream.ts";
import type { Target } from "../../../server/bench/target.ts";
import { defaultTexts } from "../../../server/bench/texts.ts";
import { median } from "../common/load.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";

const rounds = 9;
const mostExtraMs = 15;

/** The streamed variants, each with a common sampling rate. The English engine of mist has 16 kHz. */
const variants = [
  { name: "raw PCM, 16 kHz", accept: "audio/pcm", rate: 16_000, eventFormat: "pcm" },
  { name: "raw PCM, 24 kHz", accept: "audio/pcm", rate: 24_000, eventFormat: "pcm" },
  { name: "WAV, 22.05 kHz", accept: "audio/wav", rate: 22_050, eventFormat: "pcm" },
  { name: "mulaw, 8 kHz", accept: "audio/x-mulaw", rate: 8000, eventFormat: "pcm" },
  { name: "MP3, 22.05 kHz", accept: "audio/mpeg", rate: 22_050, eventFormat: "pcm" },
  { name: "Ogg Opus, 24 kHz", accept: "audio/ogg", rate: 24_000, eventFormat: "pcm" },
  { name: "events of PCM, 24 kHz", accept: "text/event-stream", rate: 24_000, eventFormat: "pcm" },
  { name: "events of mulaw, 8 kHz", accept: "text/event-stream", rate: 8000, eventFormat: "mulaw" },
  { name: "events of MP3, 22.05 kHz", accept: "text/event-stream", rate: 22_050, eventFormat: "mp3" },
] as const;

/** The longest text that `mist` accepts. */
export const longText = [...defaultTexts, ...defaultTexts]
  .join(" ")
  .slice(0, 499)
  .replace(/\W*$/, ".")
  .padEnd(500);

export const usualTarget = { shape: "svc-tts", model: "mist", voice: "alan", texts: defaultTexts } as const;

/**
 * Measures the time to first audio. Each round measures the engine alone and each variant of the server, one
 * after the other.
 */
export const firstAudio: Measurement = {
  name: "First audio",
  async measure(workbench) {
    const { url, key } = await workbench.server();
    const engines = await workbench.engines();
    const agent = new Agent({ pipelining: 1 });
    const alone: number[] = [];
    const served = variants.map(({ name }) => ({ name, times: [] as number[] }));
    for (let round = 1; round <= rounds; round++) {
      console.log(`    round ${round} of ${rounds}`);
      for (const [i, { name, ...form }] of variants.entries()) {
        alone.push(await engines.firstChunkMs(longText));
        served[i]?.times.push(await firstAudioMs(agent, { ...usualTarget, ...form, url, key }));
      }
    }
    await agent.close();
    const engineMs = median(alone);
    const medians = served.map(({ name, times }) => ({ name, ms: median(times) }));
    return { targets: [target(engineMs, medians)], text: page(engineMs, medians) };
  },
};

export async function firstAudioMs(agent: Agent, target: Target, text = longText): Promise<number> {
  const record = await measureStream(agent, target, text, AbortSignal.timeout(60_000));
  if (record.outcome !== "complete" || record.firstAudioMs === undefined) {
    throw new Error(`${target.accept} received no complete response: ${record.code ?? record.outcome}`);
  }
  return record.firstAudioMs;
}

interface Median {
  readonly name: string;
  readonly ms: number;
}

function target(engineMs: number, medians: readonly Median[]): TargetRow {
  const worst = medians.reduce((a, b) => (b.ms > a.ms ? b : a));
  const extraMs = worst.ms - engineMs;
  return {
    what: "first audio of a long text, minus that of the engine alone, slowest response",
    target: `at most ${mostExtraMs} ms`,
    measured: `${extraMs.toFixed(1)} ms (${worst.name})`,
    met: extraMs <= mostExtraMs,
  };
}

function page(engineMs: number, medians: readonly Median[]): string {
  const rows = medians.map(({ name, ms }) => [
    name,
    `${ms.toFixed(1)} ms`,
    `${(ms - engineMs).toFixed(1)} ms`,
  ]);
  const alone = ["engine alone", `${engineMs.toFixed(1)} ms`, ""];
  return `The figures are medians of ${rounds} rounds, with one stream and a text of ${longText.length} characters. The engine alone synthesizes the phrase with which the server starts.

${markdownTable(["response", "first audio", "more than the engine"], [alone, ...rows])}`;
}
