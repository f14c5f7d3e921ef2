import { setImmediate as letOthersRun } from "node:timers/promises";
import type {
  EngineFrame,
  Frame,
  Sampling,
  Token,
  TokenTimestamp,
  Utterance,
  WordTimestamp,
} from "../contract/speech.ts";
import type { VoiceEngine } from "../engine/engines.ts";
import type { Engine, OnWritten } from "../engine/runtime/engine.ts";
import type { Segment } from "../text/planning/plan.ts";
import type { WrittenToken } from "../text/tokens.ts";

/** The speech of one request. */
export interface SpeechJob {
  readonly segments: Iterable<Segment>;
  readonly speaker: VoiceEngine;
  readonly stretch: number;
  /** The sampling settings. The value is undefined if the engine does not sample. */
  readonly sampling?: Sampling;
  /** The longest audio of one phrase, in seconds at stretch 1. Longer audio is cut. */
  readonly maxPhraseSeconds: number;
}

const silenceChunkSeconds = 0.4;
/**
 * The duration of the silence for a text without words, such as an emoji or a full stop. Voice agents send
 * texts of this kind, and a response without audio would be an invalid file.
 */
const wordlessSeconds = 0.1;
/**
 * The highest number of punctuation marks on one side of a word that an engine receives. Further marks have
 * no effect.
 */
const maxPunctuation = 32;

/**
 * The time for which the first words of a new stream wait for streams that would otherwise run out of audio.
 */
const firstWaitMs = 250;

/**
 * Synthesizes the segments in order. The engine gets a segment when the previous segment was consumed, or
 * earlier if the engine works ahead.
 */
export async function* speak(speech: SpeechJob, signal: AbortSignal): AsyncGenerator<Frame, void, void> {
  const { engine } = speech.speaker;
  const segments = new SegmentQueue(speech.segments);
  let position = 0;
  let phraseStart = 0;
  let playingSinceMs: number | undefined;
  /**
   * Returns the time at which the client's player needs the next phrase. The player started with the first
   * audio. If that time has passed, the player needs audio now.
   * @param aheadSeconds the duration of the current phrase's audio that the engine has already synthesized.
   */
  const dueAtMs = (aheadSeconds: number) => {
    const now = performance.now();
    const seconds = Math.max(position / engine.rate, phraseStart / engine.rate + aheadSeconds);
    return Math.max(now, (playingSinceMs ?? now + firstWaitMs) + seconds * 1000);
  };
  let begun: BegunPhrase | undefined;
  let isFirst = true;
  const begin = (segment: PhraseSegment, aheadSeconds = 0): BegunPhrase => {
    const turn = { dueAtMs: dueAtMs(aheadSeconds), isFirst };
    isFirst = false;
    return beginPhrase(segment, speech, turn, signal, beginAhead);
  };
  const beginAhead = (writtenSeconds = 0) => {
    const next = begun || signal.aborted ? undefined : segments.ahead();
    if (next) begun = begin(next, writtenSeconds);
  };
  const take = (segment: PhraseSegment): BegunPhrase => {
    phraseStart = position;
    if (begun?.segment !== segment) return begin(segment);
    const phraseInProgress = begun;
    begun = undefined;
    const writtenSeconds = phraseInProgress.writtenSeconds();
    if (writtenSeconds !== undefined) beginAhead(writtenSeconds);
    return phraseInProgress;
  };
  try {
    for (let segment = segments.next(); segment; segment = segments.next()) {
      if (signal.aborted) return;
      if (segment.kind === "rest") {
        await letOthersRun();
        continue;
      }
      const audio =
        segment.kind === "silence"
          ? silence(segment.durationMs / 1000, engine)
          : phrase(take(segment), speech, position / engine.rate);
      for await (const frame of audio) {
        position += frame.samples.length;
        if (position > 0) playingSinceMs ??= performance.now();
        yield frame;
      }
    }
  } finally {
    await begun?.cancel();
  }
  if (position === 0 && !signal.aborted) yield* silence(wordlessSeconds, engine);
}

type PhraseSegment = Extract<Segment, { kind: "phrase" }>;

/** The number of segments without words that the search for the next phrase skips. */
const maxSkipped = 16;

/** The segments in order. The next phrase can be read in advance. */
class SegmentQueue {
  readonly #rest: Iterator<Segment>;
  readonly #buffered: Segment[] = [];

  constructor(segments: Iterable<Segment>) {
    this.#rest = segments[Symbol.iterator]();
  }

  next(): Segment | undefined {
    return this.#buffered.shift() ?? this.#pull();
  }

  /**
   * Returns the next phrase without removing it. Returns undefined if too many other segments precede the
   * phrase.
   */
  ahead(): PhraseSegment | undefined {
    const isPhrase = (segment: Segment | undefined) => segment?.kind === "phrase";
    while (!isPhrase(this.#buffered.at(-1)) && this.#buffered.length < maxSkipped) {
      const next = this.#pull();
      if (!next) return undefined;
      this.#buffered.push(next);
    }
    const last = this.#buffered.at(-1);
    return last?.kind === "phrase" ? last : undefined;
  }

  #pull(): Segment | undefined {
    const { value, done } = this.#rest.next();
    return done ? undefined : value;
  }
}

/** A phrase that the engine synthesizes. */
interface BegunPhrase {
  readonly segment: PhraseSegment;
  readonly frames: AsyncIterable<EngineFrame>;
  /**
   * Returns the duration of the phrase's audio, or undefined until the engine has synthesized the whole
   * phrase. Returns 0 if the engine does not know the duration.
   */
  writtenSeconds(): number | undefined;
  /** Cancels the phrase. */
  cancel(): Promise<void>;
}

function beginPhrase(
  segment: PhraseSegment,
  { speaker, stretch, sampling }: SpeechJob,
  turn: Required<Pick<Utterance, "dueAtMs" | "isFirst">>,
  signal: AbortSignal,
  onWritten: (seconds: number) => void,
): BegunPhrase {
  const { tokens } = segment;
  const utterance = {
    voice: speaker.voice,
    tokens: tokens.map(engineToken),
    stretch,
    ...turn,
    ...(sampling && { sampling }),
  };
  if (!speaker.engine.worksAhead) {
    const frames = speaker.engine.speak(utterance, signal);
    return { segment, frames, writtenSeconds: () => undefined, cancel: async () => undefined };
  }
  const canceled = new AbortController();
  let writtenSeconds: number | undefined;
  const reportWritten: OnWritten = (seconds = 0) => {
    writtenSeconds = seconds;
    onWritten(seconds);
  };
  const unlessCanceled = AbortSignal.any([signal, canceled.signal]);
  const frames = speaker.engine.speak(utterance, unlessCanceled, reportWritten)[Symbol.asyncIterator]();
  const first = frames.next(); // The first call of `next` starts the engine.
  // The consumer of `frames` gets the error. This handler prevents an unhandled rejection if `frames` has no
  // consumer.
  first.catch(() => undefined);
  return {
    segment,
    frames: startedWith(first, frames),
    writtenSeconds: () => writtenSeconds,
    cancel: async () => {
      canceled.abort();
      await frames.return?.();
    },
  };
}

async function* startedWith<Value>(
  first: Promise<IteratorResult<Value, void>>,
  rest: AsyncIterator<Value, void>,
): AsyncGenerator<Value, void, void> {
  try {
    for (let next = await first; !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* phrase(
  { segment: { tokens, pauseMs }, frames }: BegunPhrase,
  { speaker, stretch, maxPhraseSeconds }: SpeechJob,
  startSeconds: number,
): AsyncGenerator<Frame, void, void> {
  const words = new WordReader(tokens, startSeconds);
  for await (const frame of atMost(frames, maxPhraseSeconds * stretch)) {
    yield { samples: frame.samples, rate: frame.rate, words: words.read(frame.times) };
  }
  yield* silence((pauseMs / 1000) * stretch, speaker.engine, words.flush());
}

/**
 * Removes the parts of a token that an engine does not need. A written word may have millions of letters, and
 * every token of the word repeats them.
 */
function engineToken({ text, before, after, stretch, phonemes }: WrittenToken): Token {
  return {
    text,
    before: before.slice(-maxPunctuation),
    after: after.slice(0, maxPunctuation),
    stretch,
    ...(phonemes && { phonemes }),
  };
}

/** Cuts the audio at a duration, and removes all later words. */
async function* atMost(
  frames: AsyncIterable<EngineFrame>,
  seconds: number,
): AsyncGenerator<EngineFrame, void, void> {
  let sent = 0;
  for await (const { samples, rate, times } of frames) {
    const samplesLeft = Math.round(seconds * rate) - sent;
    sent += samples.length;
    const timesLeft = times
      .filter(({ start }) => start < seconds)
      .map((time) => ({ ...time, end: Math.min(time.end, seconds) }));
    const isLast = samples.length > samplesLeft;
    yield { samples: isLast ? samples.subarray(0, samplesLeft) : samples, rate, times: timesLeft };
    if (isLast) return;
  }
}

/**
 * Yields silence in pieces.
 * @param words the words to send with the first piece. The piece is empty if there is no silence.
 */
function* silence(
  seconds: number,
  { rate }: Engine,
  words: readonly WordTimestamp[] = [],
): Generator<Frame, void, void> {
  const total = Math.round(seconds * rate);
  const chunk = Math.round(silenceChunkSeconds * rate);
  if (total === 0 && words.length > 0) yield { samples: new Int16Array(0), rate, words };
  for (let at = 0; at < total; at += chunk) {
    yield { samples: new Int16Array(Math.min(chunk, total - at)), rate, words: at === 0 ? words : [] };
  }
}

/**
 * Converts the times of tokens in an utterance into the times of words in the stream. The last word is held
 * back until its end is final.
 */
class WordReader {
  readonly #tokens: readonly WrittenToken[];
  readonly #offset: number;
  #held: { index: number; time: WordTimestamp } | undefined;

  constructor(tokens: readonly WrittenToken[], offsetSeconds: number) {
    this.#tokens = tokens;
    this.#offset = offsetSeconds;
  }

  read(times: readonly TokenTimestamp[]): WordTimestamp[] {
    return times.flatMap((time) => this.#add(time));
  }

  flush(): WordTimestamp[] {
    const last = this.#held ? [this.#held.time] : [];
    this.#held = undefined;
    return last;
  }

  #add({ token, start, end }: TokenTimestamp): WordTimestamp[] {
    const written = this.#tokens[token];
    if (!written) return [];
    const time = {
      word: written.written,
      start: toMilliseconds(this.#offset + start),
      end: toMilliseconds(this.#offset + end),
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

/** Rounds seconds to milliseconds. */
function toMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
