import { type StretchedRun, stretchedLength, stretchRuns } from "../../audio/time-stretch.ts";
import type { TokenTimestamp, Utterance } from "../../contract/speech.ts";
import type { Sink, Synthesize } from "./serve-jobs.ts";

/** Range of lengths, relative to its own speed, in which an engine sounds well. */
export interface SpeedRange {
  readonly least: number;
  readonly most: number;
}

/**
 * Supports every speed: the engine gets a length at the edge of its range, and the rest is stretched
 * afterwards, word by word if words have different speeds. Such an utterance is sent when it is complete;
 * every other one as it arrives.
 */
export function withinSpeedRange(synthesize: Synthesize, reach: SpeedRange): Synthesize {
  return (utterance, sink) => {
    const plan = planStretch(utterance, reach);
    if (!plan) return synthesize(utterance, sink);
    const speech = new WholeSpeech();
    const spoken = synthesize(plan.asked, speech);
    if (spoken instanceof Promise) return spoken.then(() => sendStretched(speech.whole(), plan, sink));
    sendStretched(speech.whole(), plan, sink);
  };
}

interface StretchPlan {
  /** The engine's part. */
  readonly asked: Utterance;
  /** The remaining stretch for each token, and between tokens. */
  readonly rests: readonly number[];
  readonly restBetween: number;
}

/** Undefined if the engine can do all of it. */
function planStretch(utterance: Utterance, reach: SpeedRange): StretchPlan | undefined {
  const own = "stretch" in utterance.voice ? utterance.voice.stretch : 1;
  const whole = own * utterance.stretch;
  const askedWhole = clamp(whole, reach);
  const wanted = utterance.tokens.map(({ stretch }) => whole * stretch);
  if (whole === askedWhole && wanted.every((stretch) => stretch === clamp(stretch, reach))) return undefined;
  const tokens = utterance.tokens.map((token, i) => ({
    ...token,
    stretch: clamp(wanted[i] ?? whole, reach) / askedWhole,
  }));
  return {
    asked: { ...utterance, stretch: askedWhole / own, tokens },
    rests: wanted.map((stretch) => stretch / clamp(stretch, reach)),
    restBetween: whole / askedWhole,
  };
}

function clamp(stretch: number, { least, most }: SpeedRange): number {
  return Math.max(least, Math.min(most, stretch));
}

interface Whole {
  readonly heard: readonly TokenTimestamp[];
  readonly rate: number;
  readonly samples: Int16Array;
}

/** Holds one utterance, which the text front end keeps short. */
class WholeSpeech implements Sink {
  readonly #heard: TokenTimestamp[] = [];
  readonly #pieces: Int16Array[] = [];
  #rate = 0;

  audio(samples: Int16Array, rate: number): boolean {
    this.#pieces.push(samples);
    this.#rate = rate;
    return true;
  }

  times(times: readonly TokenTimestamp[]): boolean {
    this.#heard.push(...times);
    return true;
  }

  whole(): Whole {
    const samples = new Int16Array(this.#pieces.reduce((sum, piece) => sum + piece.length, 0));
    let at = 0;
    for (const piece of this.#pieces) {
      samples.set(piece, at);
      at += piece.length;
    }
    return { heard: this.#heard, rate: this.#rate, samples };
  }
}

function sendStretched({ heard, rate, samples }: Whole, plan: StretchPlan, sink: Sink): void {
  const { runs, times } = stretchedTimes(heard, samples.length, rate, plan);
  if (!sink.times(times)) return;
  for (const piece of stretchRuns(samples, rate, runs)) if (!sink.audio(piece, rate)) return;
}

/** Cuts the speech at the start and end of each token, and calculates the new times. */
function stretchedTimes(
  heard: readonly TokenTimestamp[],
  length: number,
  rate: number,
  { rests, restBetween }: StretchPlan,
): { runs: StretchedRun[]; times: TokenTimestamp[] } {
  const runs: StretchedRun[] = [];
  let from = 0;
  let to = 0;
  const advance = (place: number, stretch: number): number => {
    const run = { samples: Math.max(0, Math.min(length, place) - from), stretch };
    runs.push(run);
    from += run.samples;
    to += stretchedLength(run);
    return to / rate;
  };
  const times = heard.map(({ token, start, end }) => ({
    token,
    start: advance(Math.round(start * rate), restBetween),
    end: advance(Math.round(end * rate), rests[token] ?? restBetween),
  }));
  advance(length, restBetween);
  return { runs, times };
}
