import type { FliteVoice } from "../../../config/contract/voices.ts";
import type { Sampling, TokenTimestamp, Utterance } from "../../contract/speech.ts";
import type { FliteLibrary } from "../flite/library.ts";
import { readableTokens, writeTokens } from "../flite/tokens.ts";
import { toInt16 } from "../neural/int16.ts";
import type { Sink, Synthesize } from "../runtime/serve-jobs.ts";
import type { Generator, PlannedPhone } from "./code-generator.ts";
import { CodecDecoder } from "./decoder.ts";
import type { CodecTables } from "./model-files.ts";
import { type Phone, readPhones } from "./phones.ts";

interface ArcanaParts {
  /** Analyzes the text into sounds with their positions, without synthesis. */
  readonly flite: FliteLibrary;
  readonly generator: Generator;
  readonly codec: CodecTables;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** The stages of Flite that follow the selection of the phones. */
const speakingStages = ["duration_model_func", "f0_model_func", "wave_synth_func"];
const frontEndVoice = "awb";
/**
 * Flite's own engine plays `rms` like a tape at another speed, so smaller speakers have higher voices. This
 * factor keeps the voices distinct by the measure of `test/support/audio/timbre.ts`.
 */
const tiedPitch = 1.2;
/** Greedy by default. */
const plainSampling: Sampling = { repetitionPenalty: 1, temperature: 0, topP: 1, maxTokens: 5000 };
/** A speaker of the model, with factors for its pitch and formants. */
interface Substitute {
  readonly speaker: string;
  readonly pitch: number;
  readonly formants: number;
}
/** Maps each Flite voice that the model was not trained with to the speaker that replaces it. */
const substitutes: Partial<Record<FliteVoice["voice"], Substitute>> = {
  kal16: { speaker: "rms", pitch: 0.97, formants: 1.16 },
};

/** Synthesizes with a language model that writes a codec's codes. */
export function arcanaSynthesizer({ flite, generator, codec, random }: ArcanaParts): Synthesize {
  return async (utterance, sink) => {
    if (utterance.voice.kind !== "flite")
      throw new Error(`arcana-mini has no ${utterance.voice.kind} voices`);
    const phones = phonesOf(flite, utterance);
    if (phones.length === 0) return;
    const manner = mannerOf(utterance, utterance.voice, codec);
    const sampling = utterance.sampling ?? plainSampling;
    const { plan, frames } = await generator.generate({ phones, speaker: manner.speaker }, sampling, random);
    const samplesOf = phones.map((phone) => {
      return codec.frameSamples * manner.stretch * (utterance.tokens[phone.token]?.stretch ?? 1);
    });
    if (!sink.times(tokenTimes(phones, plan, samplesOf, codec.rate))) return;
    const heights = melody(plan, codec);
    const owners = plan.flatMap(({ frames: count }, phone) => new Array<number>(count).fill(phone));
    const decoder = new CodecDecoder(codec, manner);
    let at = 0;
    for await (const codes of frames) {
      const pitchHz = manner.pitchHz * Math.exp(heights[at] ?? 0);
      const audio = decoder.push(codes, pitchHz, samplesOf[owners[at] ?? 0] ?? codec.frameSamples);
      at++;
      if (!send(sink, audio, codec)) return;
    }
    send(sink, decoder.finish(), codec);
  };
}

function send(sink: Sink, audio: Float32Array, { rate }: CodecTables): boolean {
  return audio.length === 0 || sink.audio(toInt16(audio), rate);
}

function phonesOf(flite: FliteLibrary, { tokens }: Utterance): Phone[] {
  const readable = readableTokens(tokens);
  if (readable.length === 0) return [];
  const utt = flite.newUtterance();
  try {
    writeTokens(flite, utt, readable);
    flite.init(utt, flite.voice(frontEndVoice));
    for (const stage of speakingStages) flite.skip(utt, stage);
    if (!flite.synthTokens(utt)) throw new Error("Flite could not read this utterance");
    return readPhones(flite, utt).map(({ phone }) => phone);
  } finally {
    flite.deleteUtterance(utt);
  }
}

function mannerOf(utterance: Utterance, voice: FliteVoice, { speakers, heights }: CodecTables) {
  const substitute = substitutes[voice.voice] ?? { speaker: voice.voice, pitch: 1, formants: 1 };
  const speaker = speakers.indexOf(substitute.speaker);
  const tied = voice.voice === "rms" ? voice.formants ** tiedPitch : 1;
  if (speaker < 0) throw new Error(`arcana-mini has no speaker ${substitute.speaker}`);
  return {
    speaker,
    formants: voice.formants * substitute.formants,
    pitchHz: Math.exp(heights[speaker] ?? 0) * voice.pitch * tied * substitute.pitch,
    stretch: voice.stretch * utterance.stretch,
  };
}

/** The times of tokens are exact, because each sound lasts as long as planned. */
function tokenTimes(
  phones: readonly Phone[],
  plan: readonly PlannedPhone[],
  samplesOf: readonly number[],
  rate: number,
): TokenTimestamp[] {
  const times = new Map<number, TokenTimestamp>();
  let samples = 0;
  for (const [i, { token }] of phones.entries()) {
    const start = samples / rate;
    samples += (plan[i]?.frames ?? 0) * (samplesOf[i] ?? 0);
    if (token < 0) continue;
    times.set(token, { token, start: times.get(token)?.start ?? start, end: samples / rate });
  }
  return [...times.values()];
}

/** Log F0 of each frame against the speaker's mean: straight lines through two points of each sound. */
export function melody(plan: readonly PlannedPhone[], { pitches }: CodecTables): Float64Array {
  const points: { at: number; height: number }[] = [];
  let begin = 0;
  for (const { frames, pitch } of plan) {
    points.push({ at: begin + frames / 4 - 0.5, height: pitches[2 * pitch] ?? 0 });
    points.push({ at: begin + (3 * frames) / 4 - 0.5, height: pitches[2 * pitch + 1] ?? 0 });
    begin += frames;
  }
  const heights = new Float64Array(begin);
  let next = 0;
  for (let frame = 0; frame < begin; frame++) {
    while (next < points.length && (points[next]?.at ?? 0) <= frame) next++;
    const before = points[Math.max(0, next - 1)] ?? { at: 0, height: 0 };
    const after = points[Math.min(points.length - 1, next)] ?? before;
    const share = after.at > before.at ? Math.max(0, (frame - before.at) / (after.at - before.at)) : 0;
    heights[frame] = before.height + (after.height - before.height) * share;
  }
  return heights;
}
