import type { Invocation, WordTimestamp } from "../../../server/contract/speech.ts";
import { decodeFrames, type WireFrame } from "../../../server/contract/wire.ts";
import type { ModelTierOptions } from "../../../server/model/settings.ts";
import { type RunningTier, startModelTier } from "../../../server/model/tier.ts";

export const internalToken = "a-token-for-tests";

/** Starts a model tier with the real engines on a free port of this machine, and waits until it is warm. */
export async function modelTier(options: Partial<ModelTierOptions> = {}): Promise<RunningTier> {
  const tier = await coldModelTier(options);
  await tier.warmed;
  return tier;
}

/** Starts a model tier, and waits until it listens, but not until it is warm. */
export function coldModelTier(options: Partial<ModelTierOptions> = {}): Promise<RunningTier> {
  return startModelTier({
    tier: "mist",
    host: "127.0.0.1",
    port: 0,
    tokens: { kind: "fixed", tokens: [internalToken] },
    maxConcurrentStreams: 8,
    drainSeconds: 10,
    logLevel: "silent",
    engineProcesses: 1,
    ...options,
  });
}

export const plainInvocation: Invocation = {
  modelId: "mist",
  speaker: "alan",
  lang: "eng",
  text: "Hello.",
  stretch: 1,
  noTextNormalization: false,
  pauseBetweenBrackets: false,
  phonemizeBetweenBrackets: false,
  inlineStretch: [],
  sampling: { repetitionPenalty: 1.5, temperature: 0.5, topP: 1, maxTokens: 1200 },
};

export function invoke(
  url: string,
  invocation: Partial<Invocation>,
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${url}/invocations`, {
    method: "POST",
    headers: { authorization: `Bearer ${internalToken}`, "content-type": "application/json" },
    body: JSON.stringify({ ...plainInvocation, ...invocation }),
    ...(signal && { signal }),
  });
}

export interface Heard {
  readonly rate: number;
  readonly engine: string;
  readonly samples: Int16Array;
  readonly words: readonly WordTimestamp[];
}

/** Requests speech, and reads the response to its end. */
export async function hear(url: string, invocation: Partial<Invocation>): Promise<Heard> {
  const response = await invoke(url, invocation);
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  return listen(framesOf(response));
}

export function framesOf(response: Response): AsyncGenerator<WireFrame, void, void> {
  if (!response.body) throw new Error("the response has no body");
  return decodeFrames(response.body);
}

async function listen(frames: AsyncIterable<WireFrame>): Promise<Heard> {
  let head: { rate: number; engine: string } | undefined;
  const pieces: Int16Array[] = [];
  const words: WordTimestamp[] = [];
  for await (const frame of frames) {
    if (frame.kind === "head") head = frame;
    else if (frame.kind === "audio") pieces.push(frame.samples);
    else if (frame.kind === "words") words.push(...frame.words);
    else if (frame.kind === "error") throw frame.failure;
  }
  if (!head) throw new Error("the stream has no head frame");
  const samples = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    samples.set(piece, at);
    at += piece.length;
  }
  return { rate: head.rate, engine: head.engine, samples, words };
}
