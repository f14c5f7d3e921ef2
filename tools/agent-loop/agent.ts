import { setTimeout as sleep } from "node:timers/promises";
import type { WordTimestamp } from "../../server/contract/speech.ts";
import { sentenceEnds } from "../../server/contract/text/sentence-ends.ts";
import { type AgentSocket, agentRate } from "./agent-socket.ts";
import { type Reply, tokensOf } from "./script.ts";

export interface ConversationPace {
  readonly tokensPerSecond: number;
  /** The speed of the whole conversation, including playback. The value 1 is real time. */
  readonly speed: number;
}

/**
 * One turn, with the text that the language model wrote, and the audio and words that the user could hear.
 */
export interface TurnRecord {
  readonly written: string;
  /** The audio that was played. */
  readonly samples: Int16Array;
  /** The words that were played completely, with their times in seconds from the start of the turn. */
  readonly words: readonly WordTimestamp[];
  /** The milliseconds from the token that completes the first sentence to the first audio. */
  readonly firstAudioMs: number;
  readonly interruption: Interruption | undefined;
}

interface Interruption {
  /** The seconds of audio that the agent had played, and had received, when the user interrupted the turn. */
  readonly playedSeconds: number;
  readonly receivedSeconds: number;
  /**
   * The milliseconds until the last event of the turn, and the seconds of audio that arrived in this time.
   * Both values are 0 if the server had already sent the whole turn.
   */
  readonly silenceMs: number;
  readonly lateSeconds: number;
}

/**
 * Synthesizes the replies one after the other on one socket. A reply starts when the previous reply was
 * played.
 */
export async function converse(
  socket: AgentSocket,
  replies: readonly Reply[],
  pace: ConversationPace,
): Promise<TurnRecord[]> {
  const records: TurnRecord[] = [];
  for (const [number, reply] of replies.entries()) {
    records.push(await new SpokenTurn(reply, pace).run(socket, `turn-${number + 1}`));
  }
  return records;
}

class SpokenTurn {
  readonly #reply: Reply;
  readonly #pace: ConversationPace;
  readonly #playback: Playback;
  readonly #pieces: Int16Array[] = [];
  readonly #words: WordTimestamp[] = [];
  readonly #interrupted = new AbortController();
  #written = "";
  #sentenceAtMs: number | undefined;
  #firstAudioAtMs: number | undefined;

  constructor(reply: Reply, pace: ConversationPace) {
    this.#reply = reply;
    this.#pace = pace;
    this.#playback = new Playback(pace.speed);
  }

  async run(socket: AgentSocket, name: string): Promise<TurnRecord> {
    const { promise: playing, resolve: onFirstAudio } = Promise.withResolvers<void>();
    const turn = socket.begin(name, {
      audio: (samples) => {
        this.#firstAudioAtMs ??= performance.now();
        this.#pieces.push(samples);
        this.#playback.arrive(samples.length / agentRate);
        onFirstAudio();
      },
      words: (words) => this.#words.push(...words),
    });
    const { interruptAfterSeconds } = this.#reply;
    let endedAtMs: number | undefined;
    const ending = turn.ended.then(() => {
      endedAtMs = performance.now();
    });
    const interrupting =
      interruptAfterSeconds === undefined
        ? Promise.resolve(undefined)
        : playing.then(() =>
            this.#interruptAfter(interruptAfterSeconds, () => {
              if (endedAtMs === undefined) turn.interrupt();
            }),
          );
    const writing = this.#write(turn.write).then((isWhole) => {
      if (isWhole) turn.finish();
    });
    const [cut] = await Promise.all([interrupting, ending, writing]);
    if (!cut) await sleep(this.#playback.restMs());
    return this.#record(cut && { ...cut, silenceMs: Math.max(0, (endedAtMs ?? cut.atMs) - cut.atMs) });
  }

  /** Writes the tokens at the pace of a language model. Returns false if the turn was interrupted. */
  async #write(write: (token: string) => void): Promise<boolean> {
    const { tokensPerSecond, speed } = this.#pace;
    const startedAt = performance.now();
    for (const [at, token] of tokensOf(this.#reply.text).entries()) {
      const waitMs = startedAt + (at * 1000) / (tokensPerSecond * speed) - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      if (this.#interrupted.signal.aborted) return false;
      write(token);
      this.#written += token;
      const isSentence = sentenceEnds(this.#written, { language: "eng", commas: false }).length > 0;
      if (isSentence) this.#sentenceAtMs ??= performance.now();
    }
    this.#sentenceAtMs ??= performance.now();
    return true;
  }

  async #interruptAfter(seconds: number, interrupt: () => void) {
    while (this.#playback.playedSeconds() < seconds)
      await sleep(((seconds - this.#playback.playedSeconds()) * 1000) / this.#pace.speed);
    this.#interrupted.abort();
    const playedSeconds = this.#playback.playedSeconds();
    const receivedSeconds = this.#playback.receivedSeconds;
    interrupt();
    return { playedSeconds, receivedSeconds, atMs: performance.now() };
  }

  #record(cut: (Omit<Interruption, "lateSeconds"> & { readonly atMs: number }) | undefined): TurnRecord {
    const { receivedSeconds } = this.#playback;
    const playedSeconds = cut?.playedSeconds ?? receivedSeconds;
    return {
      written: this.#written,
      samples: Int16Array.from(this.#pieces.flatMap((piece) => [...piece])).subarray(
        0,
        Math.round(playedSeconds * agentRate),
      ),
      words: this.#words.filter(({ end }) => end <= playedSeconds),
      firstAudioMs: (this.#firstAudioAtMs ?? Number.NaN) - (this.#sentenceAtMs ?? Number.NaN),
      interruption: cut && {
        playedSeconds,
        receivedSeconds: cut.receivedSeconds,
        silenceMs: cut.silenceMs,
        lateSeconds: receivedSeconds - cut.receivedSeconds,
      },
    };
  }
}

/**
 * Simulates the player of the user. The player starts with the first audio, and pauses when no received audio
 * is left.
 */
class Playback {
  readonly #speed: number;
  /** The time at which the received audio will have been played. */
  #endMs = 0;
  receivedSeconds = 0;

  constructor(speed: number) {
    this.#speed = speed;
  }

  arrive(seconds: number): void {
    this.#endMs = Math.max(this.#endMs, performance.now()) + (seconds * 1000) / this.#speed;
    this.receivedSeconds += seconds;
  }

  restMs(): number {
    return Math.max(0, this.#endMs - performance.now());
  }

  playedSeconds(): number {
    return this.receivedSeconds - (this.restMs() * this.#speed) / 1000;
  }
}
