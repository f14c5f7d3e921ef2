import type { WordTimestamp } from "../../server/contract/speech.ts";
import { align, recognizeEach } from "../../test/support/audio/recognizer.ts";
import { markdownTable, percent } from "../bench/common/page.ts";
import type { TurnRecord } from "./agent.ts";
import { agentRate } from "./agent-socket.ts";

/** A turn with the results of the speech recognizer. */
export interface HeardTurn extends TurnRecord {
  /** The words that the recognizer found in the played audio. */
  readonly heard: string;
  /**
   * The word error rate against the words that were played. The value is undefined if the server sent no
   * words.
   */
  readonly wordErrorRate: number | undefined;
  /**
   * The errors of the start times in seconds, for each word of a complete turn: the time that the server
   * sent, minus the time that forced alignment finds in the audio.
   */
  readonly startErrors: readonly number[];
}

/**
 * Recognizes the played audio of turns, and compares the word timestamps of complete turns with the audio.
 * The aligner does not find the last word of an interrupted turn reliably.
 */
export async function recognizeTurns(turns: readonly TurnRecord[]): Promise<HeardTurn[]> {
  const recordings = turns.map((turn) => ({ turn, spoken: { ...audibleWords(turn), rate: agentRate } }));
  const recognized = await recognizeEach(recordings.map(({ spoken }) => [spoken]));
  const complete = recordings.filter(({ turn }) => !turn.interruption);
  const aligned = await align(complete.map(({ spoken }) => spoken));
  return turns.map((turn, at) => {
    const { heard = [], wordErrorRate } = recognized[at] ?? {};
    const words = aligned[complete.findIndex((one) => one.turn === turn)];
    return {
      ...turn,
      heard: heard.join(" "),
      wordErrorRate: turn.words.length > 0 ? wordErrorRate : undefined,
      startErrors: words ? startErrors(turn.words, words) : [],
    };
  });
}

/**
 * Returns the audio of the complete words, with their text. Without words, the function returns all played
 * audio.
 */
function audibleWords({ samples, words, written }: TurnRecord) {
  const end = words.at(-1)?.end;
  if (end === undefined) return { samples, sentence: written };
  return {
    samples: samples.subarray(0, Math.ceil(end * agentRate)),
    sentence: words.map(({ word }) => word).join(" "),
  };
}

function startErrors(words: readonly WordTimestamp[], aligned: readonly WordTimestamp[]): number[] {
  if (words.length !== aligned.length)
    throw new Error(
      `the server sent ${words.length} words, and the audio was aligned with ${aligned.length}`,
    );
  return words.map(({ start }, at) => start - (aligned[at]?.start ?? Number.NaN));
}

/** Returns the text and the figures of a conversation as Markdown. */
export function renderConversation(protocol: string, turns: readonly HeardTurn[]): string {
  return [`## ${protocol}`, ...turns.map((turn, at) => renderTurn(turn, at + 1))].join("\n\n");
}

function renderTurn(turn: HeardTurn, number: number): string {
  const { written, words, heard, wordErrorRate, startErrors, firstAudioMs, interruption } = turn;
  const rows = [
    ["written by the model", written.trim()],
    ["first audio after the first sentence", `${firstAudioMs.toFixed(0)} ms`],
    ...(interruption ? interruptionRows(interruption) : []),
    [
      "words by the server, with their start",
      timed(words) || "none: v1 sends words only for complete contexts",
    ],
    ["heard by the recognizer", heard],
    ["word error rate", wordErrorRate === undefined ? "" : percent(wordErrorRate)],
    ["start of a word by the server, compared with the audio", errorsOf(startErrors)],
  ];
  return `### Turn ${number}\n\n${markdownTable(
    ["", ""],
    rows.filter(([, value]) => value !== ""),
  )}`;
}

function interruptionRows(interruption: NonNullable<TurnRecord["interruption"]>): string[][] {
  const { playedSeconds, receivedSeconds, silenceMs, lateSeconds } = interruption;
  const seconds = (value: number) => `${value.toFixed(2)} s`;
  return [
    [
      "interrupted after",
      `${seconds(playedSeconds)} of audio, of ${seconds(receivedSeconds)} that had arrived`,
    ],
    [
      "last event after the interruption",
      `${silenceMs.toFixed(0)} ms, with ${seconds(lateSeconds)} of audio until then`,
    ],
  ];
}

function timed(words: readonly WordTimestamp[]): string {
  return words.map(({ word, start }) => `${word} (${start.toFixed(2)})`).join(" ");
}

function errorsOf(errors: readonly number[]): string {
  if (errors.length === 0) return "";
  const sizes = errors.map(Math.abs);
  const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  const milliseconds = (value: number) => `${(value * 1000).toFixed(0)} ms`;
  return `mean difference ${milliseconds(mean)}, largest ${milliseconds(Math.max(...sizes))}`;
}
