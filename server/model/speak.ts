import type { Engine } from "../engine/engine.ts";
import type { Speaker } from "../engine/engines.ts";
import type { EngineFrame, Frame, Token, TokenTime, WordTime } from "../speech.ts";
import type { Segment } from "../text/plan.ts";
import type { WrittenToken } from "../text/tokens.ts";
import type { Prosody } from "./prosody.ts";

export interface Speech {
  readonly segments: Iterable<Segment>;
  readonly speaker: Speaker;
  readonly stretch: number;
  readonly prosody: Prosody;
  /** Longest audio of one phrase, seconds at stretch 1; what goes beyond is cut. */
  readonly maxPhraseSeconds: number;
}

const silenceChunkSeconds = 0.1;
/** Marks on one side of a word that an engine hears of; the thirty-third says nothing new. */
const maxPunctuation = 32;

/** Speaks segment after segment; the next one is asked of the engine when the last one has been taken. */
export async function* speak(speech: Speech, signal: AbortSignal): AsyncGenerator<Frame, void, void> {
  const { engine } = speech.speaker;
  let position = 0;
  for (const segment of speech.segments) {
    if (signal.aborted) return;
    const audio =
      segment.kind === "silence"
        ? silence(segment.durationMs / 1000, engine)
        : phrase(segment, speech, position / engine.rate, signal);
    for await (const frame of audio) {
      position += frame.samples.length;
      yield frame;
    }
  }
}

async function* phrase(
  { tokens, pauseMs }: Extract<Segment, { kind: "phrase" }>,
  { speaker, stretch, prosody, maxPhraseSeconds }: Speech,
  startSeconds: number,
  signal: AbortSignal,
): AsyncGenerator<Frame, void, void> {
  const manner = prosody();
  const utterance = {
    voice: speaker.voice,
    tokens: tokens.map(spoken),
    stretch: stretch * manner.stretch,
    pitch: manner.pitch,
  };
  const words = new WordReader(tokens, startSeconds);
  const frames = speaker.engine.speak(utterance, signal);
  for await (const frame of atMost(frames, maxPhraseSeconds * stretch)) {
    yield { samples: frame.samples, rate: frame.rate, words: words.read(frame.times) };
  }
  const last = words.flush();
  if (last.length > 0) yield { samples: new Int16Array(0), rate: speaker.engine.rate, words: last };
  yield* silence((pauseMs / 1000) * stretch * manner.pause, speaker.engine);
}

/** What the engine needs of a token: a written word may have millions of letters, and would go with each of its parts. */
function spoken({ text, before, after, stretch, phonemes }: WrittenToken): Token {
  return {
    text,
    before: before.slice(-maxPunctuation),
    after: after.slice(0, maxPunctuation),
    stretch,
    ...(phonemes && { phonemes }),
  };
}

/** Cuts the audio at a length, and with it the words that are not heard any more. */
async function* atMost(
  frames: AsyncIterable<EngineFrame>,
  seconds: number,
): AsyncGenerator<EngineFrame, void, void> {
  let sent = 0;
  for await (const { samples, rate, times } of frames) {
    const left = Math.round(seconds * rate) - sent;
    sent += samples.length;
    const heard = times
      .filter(({ start }) => start < seconds)
      .map((time) => ({ ...time, end: Math.min(time.end, seconds) }));
    yield { samples: samples.length > left ? samples.subarray(0, left) : samples, rate, times: heard };
    if (samples.length > left) return;
  }
}

function* silence(seconds: number, { rate }: Engine): Generator<Frame, void, void> {
  let left = Math.round(seconds * rate);
  const chunk = Math.round(silenceChunkSeconds * rate);
  while (left > 0) {
    const length = Math.min(left, chunk);
    left -= length;
    yield { samples: new Int16Array(length), rate, words: [] };
  }
}

/** Token times of an utterance as word times of the stream. The last word is held until it cannot grow any more. */
class WordReader {
  readonly #tokens: readonly WrittenToken[];
  readonly #offset: number;
  #held: { index: number; time: WordTime } | undefined;

  constructor(tokens: readonly WrittenToken[], offsetSeconds: number) {
    this.#tokens = tokens;
    this.#offset = offsetSeconds;
  }

  read(times: readonly TokenTime[]): WordTime[] {
    return times.flatMap((time) => this.#take(time));
  }

  flush(): WordTime[] {
    const last = this.#held ? [this.#held.time] : [];
    this.#held = undefined;
    return last;
  }

  #take({ token, start, end }: TokenTime): WordTime[] {
    const written = this.#tokens[token];
    if (!written) return [];
    const time = { word: written.written, start: this.#offset + start, end: this.#offset + end };
    if (this.#held?.index === written.word) {
      this.#held = { index: written.word, time: { ...time, start: this.#held.time.start } };
      return [];
    }
    const done = this.flush();
    this.#held = { index: written.word, time };
    return done;
  }
}
