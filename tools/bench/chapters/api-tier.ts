import { createMp3Encoder } from "../../../server/audio/mp3.ts";
import type { Report } from "../../../server/bench/report.ts";
import { load, median, spentBy } from "../common/load.ts";
import type { Measurement, TargetResult } from "../common/measurement.ts";
import { markdownTable, percent } from "../common/page.ts";
import { cannedAudio, replayRate, replayText } from "../replay/audio.ts";
import { type ApiAlone, replayOptions, startApiAlone } from "./api-alone.ts";

const listeners = 300;
const listenSeconds = 12;
const leastStreamsPerCore = 300;

const mp3 = { pairs: 3, streams: 4, seconds: 4, bareSeconds: 2, pieceSeconds: 0.4 };
const leastMp3Share = 0.7;

/** Measures the cost of the API tier, with a model tier that replays audio. */
export const apiTier: Measurement = {
  name: "API tier alone",
  async measure() {
    const api = await startApiAlone();
    try {
      await load(api, mp3Load(5)); // This load warms up the compiled code.
      const pcm = await listen(api);
      const pairs = await compareMp3(api);
      return finding(pcm, pairs);
    } finally {
      await api.stop();
    }
  },
};

interface Listening {
  readonly run: Report;
  readonly streamsPerCore: number;
}

async function listen(api: ApiAlone): Promise<Listening> {
  const plan = { streams: listeners, seconds: listenSeconds, text: replayText(5, "in time") };
  const { result: run, seconds } = await spentBy([api.pid], () =>
    load(api, { ...plan, options: replayOptions }),
  );
  return { run, streamsPerCore: (run.audioSeconds ?? 0) / (seconds[0] ?? Number.NaN) };
}

function mp3Load(seconds: number) {
  const options = [...replayOptions, "--accept", "audio/mpeg", "--rate", String(replayRate)];
  return { streams: mp3.streams, seconds, text: replayText(20, "at once"), options };
}

/** The seconds of audio per second of CPU time, of the encoder alone and of the API tier. */
interface Mp3Pair {
  readonly bare: number;
  readonly served: number;
}

async function compareMp3(api: ApiAlone): Promise<Mp3Pair[]> {
  const pairs: Mp3Pair[] = [];
  for (let i = 0; i < mp3.pairs; i++) {
    const bare = await bareSpeed();
    const { result: run, seconds } = await spentBy([api.pid], () => load(api, mp3Load(mp3.seconds)));
    pairs.push({ bare, served: (run.audioSeconds ?? 0) / (seconds[0] ?? Number.NaN) });
  }
  return pairs;
}

/** Measures the encoder in this process, with the same audio in the same pieces. */
async function bareSpeed(): Promise<number> {
  const audio = cannedAudio(12);
  const pieceSamples = mp3.pieceSeconds * replayRate;
  const encoder = await createMp3Encoder(replayRate);
  const startedAt = performance.now();
  const before = process.cpuUsage();
  let encoded = 0;
  while (performance.now() - startedAt < mp3.bareSeconds * 1000) {
    const from = encoded % audio.length;
    encoder.encode(audio.subarray(from, from + pieceSamples));
    encoded += pieceSamples;
  }
  const { user, system } = process.cpuUsage(before);
  encoder.close?.();
  return encoded / replayRate / ((user + system) / 1e6);
}

function finding({ run, streamsPerCore }: Listening, pairs: readonly Mp3Pair[]): TargetResult {
  const share = median(pairs.map(({ served }) => served)) / median(pairs.map(({ bare }) => bare));
  const rows = pairs.map(({ bare, served }, i) => [
    String(i + 1),
    `${bare.toFixed(0)} s`,
    `${served.toFixed(0)} s`,
    percent(served / bare),
  ]);
  const { streams, starved } = run.playback;
  return {
    targets: [
      {
        what: "real-time streams of 24 kHz PCM per core of the API tier alone",
        target: `at least ${leastStreamsPerCore}`,
        measured: streamsPerCore.toFixed(0),
        met: streamsPerCore >= leastStreamsPerCore,
      },
      {
        what: "MP3 from the API tier relative to the encoder alone, audio per CPU second",
        target: `at least ${percent(leastMp3Share)}`,
        measured: percent(share),
        met: share >= leastMp3Share,
      },
    ],
    text: `The model tier replays a recording at 24 kHz, so the figures are those of the API tier's process: keys, validation, routing, the wire format,
encoding, HTTP.

${listeners} concurrent clients receive raw PCM at real time in chunks of a tenth of a second. Of ${streams} streams, ${starved} were more than 100 ms
late and ${run.requests.failed} failed. One CPU second served ${streamsPerCore.toFixed(0)} seconds of audio.

${mp3.streams} streams then receive MP3 at ${replayRate / 1000} kHz as fast as possible. The table has the audio per CPU second of the API tier, and of the same encoder
alone with the same audio, measured in turn:

${markdownTable(["window", "encoder alone", "API tier", "share"], rows)}`,
  };
}
