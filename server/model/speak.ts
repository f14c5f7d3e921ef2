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

export interface SpeechJob {
  readonly segments: Iterable<Segment>;
  readonly speaker: VoiceEngine;
  readonly stretch: number;
  /** Settings of an engine that samples. */
  readonly sampling?: Sampling;
  /** Longest audio of one phrase, in seconds at stretch 1. The rest is cut. */
  readonly maxPhraseSeconds: number;
}

const silenceChunkSeconds = 0.4;
/**
 * Audio of a phrase without words, such as an emoji or a full stop: agents send such pieces, and a response
 * without audio would be an invalid file.
 */
const wordlessSeconds = 0.1;
/** Highest number of marks on one side of a word that an engine receives. More marks change nothing. */
const maxPunctuation = 32;

/** How long the first words of a new stream wait for streams that would otherwise run out of audio. */
const patienceMs = 250;

/**
 * Synthesizes the segments in order. The engine gets the next segment when the last one was consumed, or
 * earlier if the engine works ahead.
 */
export async function* speak(speech: SpeechJob, signal: AbortSignal): AsyncGenerator<Frame, void, void> {
  const { engine } = speech.speaker;
  const line = new SegmentLine(speech.segments);
  let position = 0;
  let phraseStart = 0;
  let heardSinceMs: number | undefined;
  /**
   * Position of a player that plays since the first audio. A player that fell behind needs audio now.
   * @param aheadSeconds audio of the current phrase that exists and was perhaps not consumed.
   */
  const dueAtMs = (aheadSeconds: number) => {
    const now = performance.now();
    const seconds = Math.max(position / engine.rate, phraseStart / engine.rate + aheadSeconds);
    return Math.max(now, (heardSinceMs ?? now + patienceMs) + seconds * 1000);
  };
  let begun: BegunPhrase | undefined;
  let isFirst = true;
  const begin = (segment: PhraseSegment, aheadSeconds = 0): BegunPhrase => {
    const turn = { dueAtMs: dueAtMs(aheadSeconds), isFirst };
    isFirst = false;
    return beginPhrase(segment, speech, turn, signal, beginAhead);
  };
  const beginAhead = (writtenSeconds = 0) => {
    const next = begun || signal.aborted ? undefined : line.ahead();
    if (next) begun = begin(next, writtenSeconds);
  };
  const take = (segment: PhraseSegment): BegunPhrase => {
    phraseStart = position;
    if (begun?.segment !== segment) return begin(segment);
    const taken = begun;
    begun = undefined;
    const writtenSeconds = taken.writtenSeconds();
    if (writtenSeconds !== undefined) beginAhead(writtenSeconds);
    return taken;
  };
  try {
    for (let segment = line.next(); segment; segment = line.next()) {
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
        if (position > 0) heardSinceMs ??= performance.now();
        yield frame;
      }
    }
  } finally {
    await begun?.leave();
  }
  if (position === 0 && !signal.aborted) yield* silence(wordlessSeconds, engine);
}

type PhraseSegment = Extract<Segment, { kind: "phrase" }>;

/** Number of segments without phrases that the search for the next phrase skips. */
const mostLookedPast = 16;

/** Segments in order, whose next phrase can be read in advance. */
class SegmentLine {
  readonly #rest: Iterator<Segment>;
  readonly #seen: Segment[] = [];

  constructor(segments: Iterable<Segment>) {
    this.#rest = segments[Symbol.iterator]();
  }

  next(): Segment | undefined {
    return this.#seen.shift() ?? this.#pull();
  }

  /** Returns the next phrase, if it is near. */
  ahead(): PhraseSegment | undefined {
    const isPhrase = (segment: Segment | undefined) => segment?.kind === "phrase";
    while (!isPhrase(this.#seen.at(-1)) && this.#seen.length < mostLookedPast) {
      const next = this.#pull();
      if (!next) return undefined;
      this.#seen.push(next);
    }
    const last = this.#seen.at(-1);
    return last?.kind === "phrase" ? last : undefined;
  }

  #pull(): Segment | undefined {
    const { value, done } = this.#rest.next();
    return done ? undefined : value;
  }
}

/** A phrase that the engine works on. */
interface BegunPhrase {
  readonly segment: PhraseSegment;
  readonly frames: AsyncIterable<EngineFrame>;
  /** Its audio, if the engine has written all of it. 0 if the engine does not know the duration. */
  writtenSeconds(): number | undefined;
  /** Cancels the phrase. */
  leave(): Promise<void>;
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
    tokens: tokens.map(spoken),
    stretch,
    ...turn,
    ...(sampling && { sampling }),
  };
  if (!speaker.engine.worksAhead) {
    const frames = speaker.engine.speak(utterance, signal);
    return { segment, frames, writtenSeconds: () => undefined, leave: async () => undefined };
  }
  const left = new AbortController();
  let writtenSeconds: number | undefined;
  const reportWritten: OnWritten = (seconds = 0) => {
    writtenSeconds = seconds;
    onWritten(seconds);
  };
  const unlessLeft = AbortSignal.any([signal, left.signal]);
  const frames = speaker.engine.speak(utterance, unlessLeft, reportWritten)[Symbol.asyncIterator]();
  const first = frames.next(); // Requested now, so that the engine starts.
  first.catch(() => undefined); // The error is reported to the consumer, if there is one.
  return {
    segment,
    frames: startedWith(first, frames),
    writtenSeconds: () => writtenSeconds,
    leave: async () => {
      left.abort();
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
 * Shortens a token for the engine: a written word may have millions of letters, and each of its parts would
 * contain them.
 */
function spoken({ text, before, after, stretch, phonemes }: WrittenToken): Token {
  return {
    text,
    before: before.slice(-maxPunctuation),
    after: after.slice(0, maxPunctuation),
    stretch,
    ...(phonemes && { phonemes }),
  };
}

/** Cuts the audio at a length, and removes the words after it. */
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

/** @param words sent with the first piece, which is empty if there is no silence. */
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
 * Converts token times of an utterance into word times of the stream. The last word is held until it is
 * final.
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
    return times.flatMap((time) => this.#take(time));
  }

  flush(): WordTimestamp[] {
    const last = this.#held ? [this.#held.time] : [];
    this.#held = undefined;
    return last;
  }

  #take({ token, start, end }: TokenTimestamp): WordTimestamp[] {
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

/** Seconds, rounded to meaningful digits. */
function wholeMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
