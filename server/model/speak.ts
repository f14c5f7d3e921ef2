import { setImmediate as letOthersRun } from "node:timers/promises";
import type { Engine } from "../engine/engine.ts";
import type { Speaker } from "../engine/engines.ts";
import type { EngineFrame, Frame, Sampling, Token, TokenTime, WordTime } from "../speech.ts";
import type { Segment } from "../text/plan.ts";
import type { WrittenToken } from "../text/tokens.ts";
import type { Prosody } from "./prosody.ts";

export interface Speech {
  readonly segments: Iterable<Segment>;
  readonly speaker: Speaker;
  readonly stretch: number;
  readonly prosody: Prosody;
  /** For an engine that samples by itself. */
  readonly sampling?: Sampling;
  /** Longest audio of one phrase, seconds at stretch 1; what goes beyond is cut. */
  readonly maxPhraseSeconds: number;
}

const silenceChunkSeconds = 0.4;
/** What is heard of an emoji or a full stop alone: agents send such pieces, and an answer without any audio is no valid file. */
const wordlessSeconds = 0.1;
/** Marks on one side of a word that an engine hears of; the thirty-third says nothing new. */
const maxPunctuation = 32;

/** How long a new caller's first words stand back behind listeners who would run dry meanwhile. */
const patienceMs = 250;

/** Speaks segment after segment; the next one is asked of the engine when the last one has been taken. */
export async function* speak(speech: Speech, signal: AbortSignal): AsyncGenerator<Frame, void, void> {
  const { engine } = speech.speaker;
  let position = 0;
  let heardSinceMs: number | undefined;
  /** Where the listener plays since the first audio; one who fell behind is due now. */
  const dueAtMs = () => {
    const now = performance.now();
    return Math.max(now, (heardSinceMs ?? now + patienceMs) + (position / engine.rate) * 1000);
  };
  for (const segment of speech.segments) {
    if (signal.aborted) return;
    if (segment.kind === "rest") {
      await letOthersRun();
      continue;
    }
    const audio =
      segment.kind === "silence"
        ? silence(segment.durationMs / 1000, engine)
        : phrase(segment, speech, { startSeconds: position / engine.rate, dueAtMs: dueAtMs() }, signal);
    for await (const frame of audio) {
      position += frame.samples.length;
      if (position > 0) heardSinceMs ??= performance.now();
      yield frame;
    }
  }
  if (position === 0 && !signal.aborted) yield* silence(wordlessSeconds, engine);
}

async function* phrase(
  { tokens, pauseMs }: Extract<Segment, { kind: "phrase" }>,
  { speaker, stretch, prosody, sampling, maxPhraseSeconds }: Speech,
  { startSeconds, dueAtMs }: { readonly startSeconds: number; readonly dueAtMs: number },
  signal: AbortSignal,
): AsyncGenerator<Frame, void, void> {
  const manner = prosody();
  const utterance = {
    voice: speaker.voice,
    tokens: tokens.map(spoken),
    stretch: stretch * manner.stretch,
    pitch: manner.pitch,
    dueAtMs,
    ...(sampling && { sampling }),
  };
  const words = new WordReader(tokens, startSeconds);
  const frames = speaker.engine.speak(utterance, signal);
  for await (const frame of atMost(frames, maxPhraseSeconds * stretch)) {
    yield { samples: frame.samples, rate: frame.rate, words: words.read(frame.times) };
  }
  yield* silence((pauseMs / 1000) * stretch * manner.pause, speaker.engine, words.flush());
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

/** @param words told with its first piece, which is empty where there is no silence. */
function* silence(
  seconds: number,
  { rate }: Engine,
  words: readonly WordTime[] = [],
): Generator<Frame, void, void> {
  const total = Math.round(seconds * rate);
  const chunk = Math.round(silenceChunkSeconds * rate);
  if (total === 0 && words.length > 0) yield { samples: new Int16Array(0), rate, words };
  for (let at = 0; at < total; at += chunk) {
    yield { samples: new Int16Array(Math.min(chunk, total - at)), rate, words: at === 0 ? words : [] };
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
    const time = {
      word: written.written,
      start: wholeMilliseconds(this.#offset + start),
      end: wholeMilliseconds(this.#offset + end),
    };
    if (this.#held?.index === written.word) {
      this.#held = { index: written.word, time: { ...time, start: this.#held.time.start } };
      return [];
    }
    const done = this.flush();
    this.#held = { index: written.word, time };
    return done;
  }
}

/** Seconds, without digits that say nothing. */
function wholeMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
