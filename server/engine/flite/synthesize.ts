import type { FliteVoice } from "../../../config/contract/voices.ts";
import { createRateConverter, type RateConverter } from "../../audio/resample.ts";
import type { TokenTimestamp, Utterance } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "../runtime/serve-jobs.ts";
import type { SpeedRange } from "../runtime/speed-range.ts";
import type { FliteLibrary, Pointer } from "./library.ts";
import { readableTokens, writeTokens } from "./tokens.ts";

/**
 * The sizes of the pieces. The first piece has 50 ms at 16 kHz, which MP3 needs for its first frame. Each
 * further piece is twice as long as the previous piece, up to 400 ms.
 */
const pieceSamples = { first: 800, most: 6400 };
const noiseSeed = 1;
/**
 * The speeds that Flite supports. Each state of Flite's models lasts at least one frame, so faster speech
 * would be longer than requested.
 */
export const fliteSpeedRange: SpeedRange = { least: 0.5, most: 4 };
/** The length of silence that remains around the speech, so that soft onsets and releases are not cut. */
const marginSeconds = 0.02;

/**
 * Voices with a fixed pitch. The pitch model of `rms` (SPAM) has no shift parameter, so pitch and formants
 * change together.
 */
const fixedPitch: ReadonlySet<string> = new Set(["rms"]);
/**
 * The number of warp factors between 0 and 1. A low number of distinct factors keeps the filter tables small.
 */
const warpSteps = 100;

/** Creates a synthesizer that uses Flite. */
export function fliteSynthesizer(flite: FliteLibrary): Synthesize {
  return (utterance, sink) => {
    if (utterance.voice.kind !== "flite") throw new Error(`Flite has no ${utterance.voice.kind} voices`);
    const tokens = readableTokens(utterance.tokens);
    if (tokens.length === 0) return;
    const voice = flite.voice(utterance.voice.voice);
    const { warp, pitch, stretch } = voiceSettings(utterance, utterance.voice);
    const warped = new PitchShiftingSink(sink, warp);
    flite.seedNoise(noiseSeed); // A fixed seed makes the audio of equal utterances equal.
    const utt = flite.newUtterance();
    try {
      writeTokens(flite, utt, tokens);
      flite.init(utt, voice);
      flite.setFeature(utt, "duration_stretch", stretch);
      flite.setFeature(utt, "f0_shift", pitch);
      streamTo(warped, flite, utt);
      warped.finish();
    } finally {
      flite.deleteUtterance(utt);
    }
  };
}

/**
 * Divides the settings between Flite and the warp. The warp scales pitch and formants, and shortens the
 * speech.
 */
function voiceSettings(utterance: Utterance, voice: FliteVoice) {
  const fixed = fixedPitch.has(voice.voice);
  const warp = Math.round(voice.formants * (fixed ? voice.pitch : 1) * warpSteps) / warpSteps;
  return { warp, pitch: fixed ? 1 : voice.pitch / warp, stretch: voice.stretch * utterance.stretch * warp };
}

/** Sends the audio without the silence that Flite adds at both ends. */
function streamTo(sink: Sink, flite: FliteLibrary, utt: Pointer): void {
  let speech: Speech | undefined;
  let position = 0;
  let least = pieceSamples.first;
  flite.stream(utt, (read, rate) => {
    if (!speech) {
      speech = readSpeech(flite, utt);
      if (!sink.times(speech.times)) return undefined;
    }
    const samples = read();
    const from = Math.round(speech.start * rate) - position;
    const to = Math.round(speech.end * rate) - position;
    position += samples.length;
    const audio = samples.subarray(clamp(from, samples.length), clamp(to, samples.length));
    if (!sink.audio(audio, rate)) return undefined;
    if (audio.length === 0) return Math.max(0, from - samples.length) + pieceSamples.first;
    least = Math.min(2 * least, pieceSamples.most);
    return least;
  });
  if (!flite.synthTokens(utt)) throw new Error("Flite could not synthesize the utterance");
}

function clamp(place: number, length: number): number {
  return Math.max(0, Math.min(length, place));
}

interface Speech {
  /** The start and the end of the speech, in seconds of Flite's timeline. */
  readonly start: number;
  readonly end: number;
  readonly times: readonly TokenTimestamp[];
}

function readSpeech(flite: FliteLibrary, utt: Pointer): Speech {
  const words: TokenTimestamp[] = [];
  for (let word = flite.head(flite.relation(utt, "Word")); word; word = flite.next(word)) {
    const token = flite.parent(flite.as(word, "Token"));
    const start = flite.floatAt(word, "R:SylStructure.daughter1.daughter1.R:Segment.p.end");
    const end = flite.floatAt(word, "R:SylStructure.daughtern.daughtern.R:Segment.end");
    if (token && end > start) words.push({ token: flite.intOf(token, "written"), start, end });
  }
  const start = Math.max(0, (words[0]?.start ?? 0) - marginSeconds);
  const end = words.length === 0 ? 0 : Math.max(...words.map((word) => word.end)) + marginSeconds;
  return { start, end, times: mergeByToken(words, start) };
}

/** Merges the times of the words of each token. A token such as "$5" has two words. */
function mergeByToken(words: readonly TokenTimestamp[], from: number): TokenTimestamp[] {
  const merged = new Map<number, TokenTimestamp>();
  for (const { token, start, end } of words) {
    merged.set(token, { token, start: merged.get(token)?.start ?? start - from, end: end - from });
  }
  return [...merged.values()];
}

/**
 * Resamples speech to another speed. Pitch and formants rise by the factor, and the duration shrinks by the
 * factor. Flite gets a lower pitch and a longer duration to compensate, so that only the formants change.
 */
class PitchShiftingSink implements Sink {
  readonly #sink: Sink;
  readonly #warp: number;
  #converter: RateConverter | undefined;
  #rate = 0;

  constructor(sink: Sink, warp: number) {
    this.#sink = sink;
    this.#warp = warp;
  }

  audio(samples: Int16Array, rate: number): boolean {
    this.#rate = rate;
    this.#converter ??= createRateConverter(Math.round(rate * this.#warp), rate);
    return this.#sink.audio(this.#converter.push(samples), rate);
  }

  times(times: readonly TokenTimestamp[]): boolean {
    const scaledTime = ({ token, start, end }: TokenTimestamp) => ({
      token,
      start: start / this.#warp,
      end: end / this.#warp,
    });
    return this.#sink.times(times.map(scaledTime));
  }

  isStopped(): boolean {
    return this.#sink.isStopped();
  }

  /** Sends the samples that remain in the filter. */
  finish(): void {
    if (this.#converter) this.#sink.audio(this.#converter.finish(), this.#rate);
  }
}
