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
  /** Reads the sounds of a text and their positions, without synthesis. */
  readonly flite: FliteLibrary;
  readonly generator: Generator;
  readonly codec: CodecTables;
  /** Returns uniform numbers in [0, 1). */
  readonly random: () => number;
}

/**
 * The stages of Flite's synthesis that follow the selection of the phones. The engine skips these stages,
 * because the language model and the codec replace them.
 */
const skippedStages = ["duration_model_func", "f0_model_func", "wave_synth_func"];
const frontEndVoice = "awb";
/**
 * The exponent that makes the pitch of `rms` voices depend on their formants, as in the Flite engine, where
 * both change together. The value keeps the voices distinct by the measure of `test/support/audio/timbre.ts`.
 */
const pitchExponent = 1.2;
/** The default sampling, which always selects the most likely code. */
const plainSampling: Sampling = { repetitionPenalty: 1, temperature: 0, topP: 1, maxTokens: 5000 };
/** A speaker of the model, with factors for pitch and formants. */
interface Substitute {
  readonly speaker: string;
  readonly pitch: number;
  readonly formants: number;
}
/** The speakers that replace Flite voices with which the model was not trained. */
const substitutes: Partial<Record<FliteVoice["voice"], Substitute>> = {
  kal16: { speaker: "rms", pitch: 0.97, formants: 1.16 },
};

/**
 * Creates a synthesizer that uses a language model and a codec. The language model writes codes, and the
 * codec decodes the codes.
 */
export function arcanaSynthesizer({ flite, generator, codec, random }: ArcanaParts): Synthesize {
  return async (utterance, sink) => {
    if (utterance.voice.kind !== "flite")
      throw new Error(`arcana-mini has no ${utterance.voice.kind} voices`);
    const phones = phonesOf(flite, utterance);
    if (phones.length === 0) return;
    const settings = settingsOf(utterance, utterance.voice, codec);
    const sampling = utterance.sampling ?? plainSampling;
    const { plan, frames } = await generator.generate(
      { phones, speaker: settings.speaker },
      sampling,
      random,
      () => sink.isStopped(),
    );
    const samplesOf = phones.map((phone) => {
      return codec.frameSamples * settings.stretch * (utterance.tokens[phone.token]?.stretch ?? 1);
    });
    if (!sink.times(tokenTimes(phones, plan, samplesOf, codec.rate))) return;
    const heights = melody(plan, codec);
    const phoneOfFrame = plan.flatMap(({ frames: count }, phone) => new Array<number>(count).fill(phone));
    const decoder = new CodecDecoder(codec, settings);
    let at = 0;
    for await (const codes of frames) {
      const pitchHz = settings.pitchHz * Math.exp(heights[at] ?? 0);
      const audio = decoder.push(codes, pitchHz, samplesOf[phoneOfFrame[at] ?? 0] ?? codec.frameSamples);
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
    for (const stage of skippedStages) flite.skip(utt, stage);
    if (!flite.synthTokens(utt)) throw new Error("Flite could not read the utterance");
    return readPhones(flite, utt).map(({ phone }) => phone);
  } finally {
    flite.deleteUtterance(utt);
  }
}

function settingsOf(utterance: Utterance, voice: FliteVoice, { speakers, heights }: CodecTables) {
  const substitute = substitutes[voice.voice] ?? { speaker: voice.voice, pitch: 1, formants: 1 };
  const speaker = speakers.indexOf(substitute.speaker);
  const formantPitch = voice.voice === "rms" ? voice.formants ** pitchExponent : 1;
  if (speaker < 0) throw new Error(`arcana-mini has no speaker ${substitute.speaker}`);
  return {
    speaker,
    formants: voice.formants * substitute.formants,
    pitchHz: Math.exp(heights[speaker] ?? 0) * voice.pitch * formantPitch * substitute.pitch,
    stretch: voice.stretch * utterance.stretch,
  };
}

/**
 * Calculates the times of the tokens from the plan. The times are exact, because each sound lasts as long as
 * planned.
 */
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

/**
 * Returns the log F0 of each frame relative to the speaker's mean, on straight lines through two points of
 * each sound.
 */
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
