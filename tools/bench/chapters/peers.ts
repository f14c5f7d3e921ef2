import { createRequire } from "node:module";
import { join } from "node:path";
import { VoicesFolder } from "../../../test/support/voices/folder.ts";
import type { Measurement, TargetRow } from "../common/measurement.ts";
import { markdownTable } from "../common/page.ts";
import { startServer } from "../common/running-server.ts";
import {
  alternate,
  comparedSentences,
  comparedText,
  measureThroughput,
  type Send,
  timeFirstAudio,
  untilServed,
} from "../common/servers-in-turn.ts";
import { startPiper } from "./piper-server.ts";

/** The results for one model: medians of this server and of Piper's server. */
interface PeerFigures {
  readonly model: string;
  readonly runtimes: Side<string>;
  readonly firstAudioMs: Medians;
  /** The seconds of audio per second, for each number of streams. */
  readonly audioPerSecond: readonly (Medians & { readonly streams: number })[];
}

/**
 * A value of this server (`ours`), of Piper's server as pip installs it (`theirs`), and of Piper's server
 * with this server's version of ONNX Runtime (`theirsLikeOurs`).
 */
interface Side<T> {
  readonly ours: T;
  readonly theirs: T;
  readonly theirsLikeOurs: T;
}

type Medians = Side<number>;

const firstAudioRounds = 5;
const windows = 3;
const windowSeconds = 4;
const mostOfTheirFirstAudio = 0.5;
const models = [
  { voice: "tiny", model: "tiny, 50 kB" },
  { voice: "large", model: "of a real voice's size, 20 million parameters" },
] as const;
const streamCounts = [1, 8];
const sides = ["ours", "theirs", "theirsLikeOurs"] as const;
const ourRuntime = (createRequire(import.meta.url)("onnxruntime-node/package.json") as { version: string })
  .version;
/** The format of the responses: WAV at the rate of the models. */
const wav = { rate: 22_050, headerBytes: 44 };

/** Compares this server with Piper's server, in turn and with the same models. */
export const peers: Measurement = {
  name: "Comparison with Piper's server",
  async measure() {
    const figures = await measurePeers();
    return { targets: figures.flatMap(targets), text: page(figures) };
  },
};

/**
 * Measures both servers. The function starts a separate server, because the other chapters measure a server
 * without mounted voices.
 */
async function measurePeers(): Promise<PeerFigures[]> {
  const folder = new VoicesFolder();
  folder.piper("tiny", { frames: [2, 6] });
  folder.largePiper("large");
  const ours = await startServer({ SVC_TTS_VOICES_DIR: folder.path });
  try {
    const figures: PeerFigures[] = [];
    for (const { voice, model } of models) {
      const file = join(folder.path, `${voice}.onnx`);
      const theirs = await startPiper(file);
      const likeOurs = await startPiper(file, ourRuntime);
      try {
        await untilServed(ours.url, voice);
        console.log(`    ${model}`);
        const senders = {
          ours: senderToUs(ours, voice),
          theirs: senderToPiper(theirs.url),
          theirsLikeOurs: senderToPiper(likeOurs.url),
        };
        const runtimes = { ours: ourRuntime, theirs: theirs.runtime, theirsLikeOurs: likeOurs.runtime };
        figures.push({ model, runtimes, ...(await measureModel(senders)) });
      } finally {
        await Promise.all([theirs.stop(), likeOurs.stop()]);
      }
    }
    return figures;
  } finally {
    await ours.stop();
    folder.delete();
  }
}

function targets({ model, firstAudioMs, audioPerSecond }: PeerFigures): TargetRow[] {
  const first = firstAudioMs.ours / firstAudioMs.theirs;
  return [
    {
      what: `first audio of a long text relative to Piper's server, model ${model}`,
      target: "at most half of theirs",
      measured: `${first.toFixed(2)} of theirs`,
      met: first <= mostOfTheirFirstAudio,
    },
    ...audioPerSecond.map(({ streams, ours, theirs }) => ({
      what: `audio per second relative to Piper's server at ${streams} stream${streams === 1 ? "" : "s"}, model ${model}`,
      target: "at least theirs",
      measured: `${(ours / theirs).toFixed(2)} of theirs`,
      met: ours >= theirs,
    })),
  ];
}

function page(figures: readonly PeerFigures[]): string {
  const rows = figures.flatMap(({ model, firstAudioMs, audioPerSecond }) => [
    [model, "first audio", ...sides.map((side) => `${firstAudioMs[side].toFixed(0)} ms`)],
    ...audioPerSecond.map(({ streams, ...medians }) => [
      model,
      `audio per second, streams: ${streams}`,
      ...sides.map((side) => `${medians[side].toFixed(1)} s`),
    ]),
  ]);
  const { ours = "", theirs = "", theirsLikeOurs = "" } = figures[0]?.runtimes ?? {};
  return `The benchmark alternates between our server and the HTTP server of PyPI's \`piper-tts\`, with the same models of random weights. Each server is started as its documentation says.
The figures are medians. First audio is that of a text of ${comparedText.length} characters; Piper's server responds when it has synthesized the whole text. Throughput is that of sentences
without pauses. Our server uses \`mist\`, which like Piper does not split short sentences; \`mistv2\` splits them for an earlier first
audio.

ONNX Runtime takes nearly all of the time. \`pip\` installs version ${theirs} for Piper, and the newest version for Node is ${ours}. The last column is Piper's server with
${theirsLikeOurs}, which separates the effect of the runtime from that of the servers. The targets above compare with Piper's server as \`pip\` installs it.

${markdownTable(["model", "figure", `ours, ${ours}`, `Piper's, ${theirs}`, `Piper's, ${theirsLikeOurs}`], rows)}`;
}

async function measureModel(
  senders: Side<Send>,
): Promise<Pick<PeerFigures, "firstAudioMs" | "audioPerSecond">> {
  for (const side of sides)
    for (const text of comparedSentences) await timeFirstAudio(senders[side], wav, text);
  const first = await alternate(firstAudioRounds, senders, (send) => timeFirstAudio(send, wav, comparedText));
  const audioPerSecond: (Medians & { streams: number })[] = [];
  for (const streams of streamCounts) {
    const medians = await alternate(windows, senders, (send) =>
      measureThroughput(send, wav, { streams, seconds: windowSeconds }),
    );
    console.log(`    ${streams} streams: ${formatted(medians, 1)} s/s`);
    audioPerSecond.push({ streams, ...medians });
  }
  console.log(`    first audio: ${formatted(first, 0)} ms`);
  return { firstAudioMs: first, audioPerSecond };
}

function formatted(medians: Medians, digits: number): string {
  return sides.map((side) => `${side} ${medians[side].toFixed(digits)}`).join(", ");
}

function senderToUs({ url, key }: { readonly url: string; readonly key: string }, voice: string): Send {
  const headers = {
    authorization: `Bearer ${key}`,
    accept: "audio/wav",
    "content-type": "application/json",
  };
  return (text) =>
    fetch(`${url}/v1/svc-tts`, {
      method: "POST",
      headers,
      body: JSON.stringify({ speaker: voice, modelId: "mist", text, samplingRate: wav.rate }),
    });
}

function senderToPiper(url: string): Send {
  return (text) =>
    fetch(`${url}/synthesize`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text }),
    });
}
