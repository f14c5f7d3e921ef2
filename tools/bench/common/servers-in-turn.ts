/**
 * A comparison of this server with another server that synthesizes with the same model on the same machine.
 */
import { execFileSync } from "node:child_process";
import { median } from "./load.ts";

/** Sends a speech request for a text. */
export type Send = (text: string) => Promise<Response>;

/** The format of a response: samples have 16 bits and one channel. */
export interface ResponseFormat {
  readonly rate: number;
  readonly headerBytes: number;
}

export const comparedText =
  "The harbour was quiet when the first boats came in. Gulls circled over the wet stones and called to each other. A woman in a yellow coat stood at the end of the pier and waited for her brother. He had left before the storm, and she had not heard of him for two days. When his boat came round the light at last, she did not wave. She only put her hands into her pockets, turned round and walked slowly back to the town, where the bakery had just opened its doors and the smell of bread filled the street.".slice(
    0,
    500,
  );
/** Sentences without a pause, so that silence does not count as audio. */
export const comparedSentences = [
  "Your order has been shipped and will arrive on Thursday.",
  "Please hold the line while I look up your account.",
  "The meeting has been moved to the large room on the second floor.",
  "There is light traffic on the main road into the city this morning.",
  "I could not find a booking under that name for tonight.",
  "Would you like me to send the receipt to your address.",
];

/** Measures the servers in turn, and returns the medians. The order of the servers changes in each round. */
export async function alternate<Side extends string>(
  rounds: number,
  senders: Readonly<Record<Side, Send>>,
  measure: (send: Send) => Promise<number>,
): Promise<Record<Side, number>> {
  const sides = Object.keys(senders) as Side[];
  const measured = new Map<Side, number[]>(sides.map((side) => [side, []]));
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      measured.get(side)?.push(await measure(senders[side]));
    }
  }
  const medians = sides.map((side) => [side, median(measured.get(side) ?? [])]);
  return Object.fromEntries(medians) as Record<Side, number>;
}

/**
 * Returns the seconds of audio per second. No request starts after the end of the window. Running requests
 * finish, and the measured time includes these requests.
 */
export async function measureThroughput(
  send: Send,
  format: ResponseFormat,
  { streams, seconds }: { readonly streams: number; readonly seconds: number },
): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  let audioSeconds = 0;
  const stream = async () => {
    while (performance.now() - startedAt < seconds * 1000) {
      const text = comparedSentences[next++ % comparedSentences.length] ?? "";
      const received = await readAudio(await send(text), format, startedAt);
      // The sum is read after the await, because other streams change the sum during the await.
      audioSeconds += received.audioSeconds;
    }
  };
  await Promise.all(Array.from({ length: streams }, stream));
  return audioSeconds / ((performance.now() - startedAt) / 1000);
}

export async function timeFirstAudio(send: Send, format: ResponseFormat, text: string): Promise<number> {
  const startedAt = performance.now();
  return (await readAudio(await send(text), format, startedAt)).firstAudioMs;
}

async function readAudio(
  response: Response,
  { rate, headerBytes }: ResponseFormat,
  startedAt: number,
): Promise<{ firstAudioMs: number; audioSeconds: number }> {
  if (!response.ok || !response.body)
    throw new Error(`${response.url} responded with status ${response.status}`);
  let bytes = 0;
  let firstAudioMs = Number.NaN;
  for await (const piece of response.body) {
    bytes += piece.length;
    if (Number.isNaN(firstAudioMs) && bytes > headerBytes) firstAudioMs = performance.now() - startedAt;
  }
  return { firstAudioMs, audioSeconds: (bytes - headerBytes) / 2 / rate };
}

/** Waits until this server lists a voice. */
export async function untilServed(url: string, voice: string): Promise<void> {
  const until = performance.now() + 120_000;
  while (performance.now() < until) {
    const { voices } = (await (await fetch(`${url}/v1/voices`)).json()) as { voices: { id: string }[] };
    if (voices.some(({ id }) => id === voice)) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`${voice} was not served in time`);
}

/** Returns the version of ONNX Runtime in a Python environment. */
export function onnxRuntimeOf(python: string): string {
  const script = "import onnxruntime; print(onnxruntime.__version__)";
  return execFileSync(python, ["-c", script], { encoding: "utf8" }).trim();
}
