import { type StretchedRun, stretchedLength, stretchRuns } from "../../audio/time-stretch.ts";
import type { TokenTimestamp, Utterance } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "./serve-jobs.ts";

/** The range of speech lengths, relative to the engine's normal length, in which an engine sounds natural. */
export interface SpeedRange {
  readonly least: number;
  readonly most: number;
}

/**
 * Extends an engine to every speed. For a speed outside the range, the engine uses the nearest speed in its
 * range, and the audio is stretched afterwards, word by word if words have different speeds. A stretched
 * utterance is sent when it is complete. Every other utterance is sent as its audio arrives.
 */
export function withinSpeedRange(synthesize: Synthesize, reach: SpeedRange): Synthesize {
  return (utterance, sink) => {
    const plan = planStretch(utterance, reach);
    if (!plan) return synthesize(utterance, sink);
    const speech = new WholeSpeech(sink);
    const spoken = synthesize(plan.supported, speech);
    if (spoken instanceof Promise) return spoken.then(() => sendStretched(speech.whole(), plan, sink));
    sendStretched(speech.whole(), plan, sink);
  };
}

interface StretchPlan {
  /** The utterance with stretches that the engine supports. */
  readonly supported: Utterance;
  /** The stretch that remains after the engine, for each token and between tokens. */
  readonly rests: readonly number[];
  readonly restBetween: number;
}

/** Returns undefined if the engine supports every stretch of the utterance. */
function planStretch(utterance: Utterance, reach: SpeedRange): StretchPlan | undefined {
  const own = "stretch" in utterance.voice ? utterance.voice.stretch : 1;
  const whole = own * utterance.stretch;
  const supportedWhole = clamp(whole, reach);
  const requested = utterance.tokens.map(({ stretch }) => whole * stretch);
  if (whole === supportedWhole && requested.every((stretch) => stretch === clamp(stretch, reach)))
    return undefined;
  const tokens = utterance.tokens.map((token, i) => ({
    ...token,
    stretch: clamp(requested[i] ?? whole, reach) / supportedWhole,
  }));
  return {
    // Windows only bring forward the first audio, and their audio is less exact. Here the whole audio is awaited.
    supported: { ...utterance, stretch: supportedWhole / own, tokens, inWindows: false },
    rests: requested.map((stretch) => stretch / clamp(stretch, reach)),
    restBetween: whole / supportedWhole,
  };
}

function clamp(stretch: number, { least, most }: SpeedRange): number {
  return Math.max(least, Math.min(most, stretch));
}

interface Whole {
  readonly tokenTimes: readonly TokenTimestamp[];
  readonly rate: number;
  readonly samples: Int16Array;
}

/** Collects the audio of one utterance. The text front end limits the length of an utterance. */
class WholeSpeech implements Sink {
  readonly #target: Sink;
  readonly #tokenTimes: TokenTimestamp[] = [];
  readonly #pieces: Int16Array[] = [];
  #rate = 0;

  /**
   * Creates a collector.
   * @param target the sink of the stretched audio. A stop of its job stops the engine too.
   */
  constructor(target: Sink) {
    this.#target = target;
  }

  audio(samples: Int16Array, rate: number): boolean {
    this.#pieces.push(samples);
    this.#rate = rate;
    return !this.isStopped();
  }

  times(times: readonly TokenTimestamp[]): boolean {
    this.#tokenTimes.push(...times);
    return !this.isStopped();
  }

  isStopped(): boolean {
    return this.#target.isStopped();
  }

  whole(): Whole {
    const samples = new Int16Array(this.#pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of this.#pieces) {
      samples.set(piece, at);
      at += piece.length;
    }
    return { tokenTimes: this.#tokenTimes, rate: this.#rate, samples };
  }
}

function sendStretched({ tokenTimes, rate, samples }: Whole, plan: StretchPlan, sink: Sink): void {
  const { runs, times } = stretchedTimes(tokenTimes, samples.length, rate, plan);
  if (!sink.times(times)) return;
  for (const piece of stretchRuns(samples, rate, runs)) if (!sink.audio(piece, rate)) return;
}

/** Cuts the speech at the start and end of each token, and calculates the new times. */
function stretchedTimes(
  tokenTimes: readonly TokenTimestamp[],
  length: number,
  rate: number,
  { rests, restBetween }: StretchPlan,
): { runs: StretchedRun[]; times: TokenTimestamp[] } {
  const runs: StretchedRun[] = [];
  let from = 0;
  let to = 0;
  const advance = (position: number, stretch: number): number => {
    const run = { samples: Math.max(0, Math.min(length, position) - from), stretch };
    runs.push(run);
    from += run.samples;
    to += stretchedLength(run);
    return to / rate;
  };
  const times = tokenTimes.map(({ token, start, end }) => ({
    token,
    start: advance(Math.round(start * rate), restBetween),
    end: advance(Math.round(end * rate), rests[token] ?? restBetween),
  }));
  advance(length, restBetween);
  return { runs, times };
}
