import { countCodePoints } from "../request/code-points.ts";
import type { ClearMode } from "../request/socket-options.ts";
import { divide, type SegmentationOptions, splitReady } from "./segmentation.ts";

/** The client's ID of a context, or null if the client has not sent an ID. */
export type ContextId = string | null;

/** The options for the brackets in one text. These options override the settings of the socket. */
export interface TextMarkup {
  readonly phonemizeBetweenBrackets?: boolean;
  readonly inlineSpeedAlpha?: string;
}

/** A text for one invocation of the model tier. */
export interface Synthesis {
  readonly number: number;
  readonly contextId: ContextId;
  readonly text: string;
  readonly markup: TextMarkup;
}

/** An action for the connection, which executes all actions in order. */
export type SessionAction =
  | { readonly kind: "speak"; readonly synthesis: Synthesis }
  /** Stops the running synthesis. The connection sends no further audio of this synthesis. */
  | { readonly kind: "stop" }
  | { readonly kind: "done"; readonly contextId: ContextId }
  | { readonly kind: "close"; readonly reason: CloseReason };

/**
 * The reasons are: the client sent `eos` (`ended`), the server shuts down (`draining`), or the text is above
 * a limit (`tooLong`).
 */
export type CloseReason = "ended" | "draining" | "tooLong";

export interface SessionOptions extends SegmentationOptions {
  readonly clearMode: ClearMode;
  /** The highest number of characters that wait for synthesis, in the buffer and in the queue together. */
  readonly longestBacklog: number;
}

export interface ArrivedText {
  readonly text: string;
  /** The context of the text. Null means the current context. */
  readonly contextId: ContextId;
  readonly markup?: TextMarkup;
}

/** The texts of one context up to a flush. The server sends one `done` at the end of a turn. */
interface Turn {
  readonly contextId: ContextId;
  /** Whether the turn accepts no more text. The server then sends `done` after the last audio. */
  isClosed: boolean;
  /** The number of syntheses that are queued or running. */
  unfinished: number;
  hasSpoken: boolean;
}

/** Adjacent texts of one turn that may be synthesized together. */
interface BufferedText {
  readonly turn: Turn;
  readonly markup: TextMarkup;
  text: string;
}

interface CommittedText {
  readonly turn: Turn;
  readonly synthesis: Synthesis;
}

/**
 * The state of one socket with streamed text. Text is buffered, committed to a queue and synthesized, one synthesis
 * at a time. Each method handles one event and returns the resulting actions. The class uses no network and no clock.
 */
export class TextSession {
  readonly #options: SessionOptions;
  readonly #buffer: BufferedText[] = [];
  readonly #queue: CommittedText[] = [];
  readonly #turns: Turn[] = [];
  #running: CommittedText | undefined;
  #contextId: ContextId = null;
  #syntheses = 0;
  /** Whether the client sent `eos`. */
  #isEnding = false;
  /** Whether a `done` was sent after `eos`. The last event before the close is always `done`. */
  #hasEndedWithDone = false;
  #isDraining = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Whether all turns have ended. The session then has no waiting text and no pending event. */
  get isIdle(): boolean {
    return this.#turns.length === 0;
  }

  /** Handles text of the client. A new context ID ends the previous turn. */
  text({ text, contextId, markup = {} }: ArrivedText): SessionAction[] {
    if (this.#isClosed || this.#isEnding) return [];
    const isNewContext = contextId !== null && contextId !== this.#contextId;
    if (isNewContext) this.#closeTurn();
    if (isNewContext) this.#contextId = contextId;
    if (isNewContext || text.trim() !== "") this.#openTurn();
    this.#append(text, markup);
    const actions = this.#advance();
    const isFull = !this.#isClosed && this.#backlog() > this.#options.longestBacklog;
    return isFull ? this.#close("tooLong", actions) : actions;
  }

  /** Handles `flush`, which commits all buffered text and closes the turn. */
  flush(): SessionAction[] {
    if (this.#isClosed || this.#isEnding) return [];
    this.#commitBuffer();
    this.#closeTurn();
    return this.#advance();
  }

  /**
   * Handles `clear`, which discards text that is not synthesized yet. With `abort`, the running synthesis
   * also stops.
   */
  clear(): SessionAction[] {
    if (this.#isClosed || this.isIdle) return [];
    return this.#options.clearMode === "abort" ? this.#abort() : this.#clearBuffer();
  }

  /**
   * Handles `eos`, after which the client sends no more text. The socket closes after all text is
   * synthesized.
   */
  eos(): SessionAction[] {
    if (this.#isClosed || this.#isEnding) return [];
    this.#commitBuffer();
    this.#closeTurn();
    this.#isEnding = true;
    return this.#advance();
  }

  /** Handles a long silence of the client, which has the effect of a flush. */
  silence(): SessionAction[] {
    const turn = this.#openTurnNow();
    if (this.#isClosed || !turn || !this.#endsBySilence(turn)) return [];
    return this.flush();
  }

  /** Handles the drain of the server. The socket closes after all text is synthesized. */
  drain(): SessionAction[] {
    if (this.#isClosed) return [];
    this.#isDraining = true;
    return this.#advance();
  }

  /** Handles the end of a synthesis. The end of a stopped synthesis has no effect. */
  finished(number: number): SessionAction[] {
    const running = this.#takeRunning(number);
    if (!running) return [];
    running.turn.unfinished -= 1;
    return this.#advance();
  }

  /** Handles a failed synthesis. The client has received an error in place of the `done` of the turn. */
  failed(number: number): SessionAction[] {
    const running = this.#takeRunning(number);
    if (!running) return [];
    this.#drop(running.turn);
    return this.#advance();
  }

  #takeRunning(number: number): CommittedText | undefined {
    const running = this.#running;
    if (this.#isClosed || running?.synthesis.number !== number) return undefined;
    this.#running = undefined;
    return running;
  }

  #openTurnNow(): Turn | undefined {
    const last = this.#turns.at(-1);
    return last?.isClosed ? undefined : last;
  }

  #openTurn(): void {
    if (this.#openTurnNow()) return;
    this.#turns.push({ contextId: this.#contextId, isClosed: false, unfinished: 0, hasSpoken: false });
  }

  #closeTurn(): void {
    const turn = this.#openTurnNow();
    if (turn) turn.isClosed = true;
  }

  #append(text: string, markup: TextMarkup): void {
    const turn = this.#openTurnNow();
    const last = this.#buffer.at(-1);
    const isBlank = text.trim() === "";
    const joinsLast = last && last.turn === turn && (isBlank || isSameMarkup(last.markup, markup));
    if (joinsLast) last.text += text;
    else if (turn && !isBlank) this.#buffer.push({ turn, markup, text });
  }

  /**
   * Returns the number of waiting characters. Each turn counts as one character, so that the number of empty
   * turns is bounded.
   */
  #backlog(): number {
    const queued = this.#queue.map(({ synthesis }) => synthesis);
    return [...queued, ...this.#buffer].reduce((sum, { text }) => sum + text.length, this.#turns.length);
  }

  /**
   * Returns whether silence of the client ends the turn. Silence ends turns with a context ID. While the
   * server drains, silence ends every turn, so that the socket can close.
   */
  #endsBySilence(turn: Turn): boolean {
    if (this.#isDraining) return true;
    const waitsForFlush = this.#options.mode === "never" && this.#buffer.length > 0;
    return turn.contextId !== null && !waitsForFlush;
  }

  #commitBuffer(): void {
    for (const buffered of this.#buffer.splice(0)) this.#commit(buffered, buffered.text);
  }

  #commit({ turn, markup }: BufferedText, ready: string): void {
    for (const text of divide(ready, this.#options)) {
      const number = this.#syntheses++;
      this.#queue.push({ turn, synthesis: { number, contextId: turn.contextId, text, markup } });
      turn.unfinished += 1;
      turn.hasSpoken = true;
    }
  }

  /** Commits as much of the buffer as the mode allows, if no synthesis runs or waits. */
  #commitReady(): void {
    while (!this.#running && this.#queue.length === 0) {
      const [first, second] = this.#buffer;
      if (!first) return;
      // No more text can follow in this turn, so the text does not wait for the end of a sentence.
      const isComplete = (second !== undefined || first.turn.isClosed) && this.#options.mode !== "never";
      const { ready, rest } = isComplete
        ? { ready: first.text, rest: "" }
        : splitReady(first.text, this.#options);
      if (ready === "") return;
      this.#commit(first, ready);
      first.text = rest.trimStart();
      if (first.text === "") this.#buffer.shift();
    }
  }

  #advance(): SessionAction[] {
    this.#commitReady();
    this.#closeAnonymousTurn();
    const actions = this.#finishTurns();
    const next = this.#startNext();
    if (next && countCodePoints(next.text) > this.#options.longestText)
      return this.#close("tooLong", actions);
    if (next) actions.push({ kind: "speak", synthesis: next });
    return this.isIdle ? this.#closeIdle(actions) : actions;
  }

  #closeIdle(actions: SessionAction[]): SessionAction[] {
    if (this.#isEnding && !this.#hasEndedWithDone) actions.push({ kind: "done", contextId: this.#contextId });
    if (this.#isEnding) return this.#close("ended", actions);
    return this.#isDraining ? this.#close("draining", actions) : actions;
  }

  /** Closes a turn without a context ID as soon as all received text is synthesized. */
  #closeAnonymousTurn(): void {
    const turn = this.#openTurnNow();
    const isSpoken = turn?.hasSpoken && turn.unfinished === 0 && this.#buffer.length === 0;
    if (turn?.contextId === null && isSpoken && this.#options.mode !== "never") turn.isClosed = true;
  }

  #finishTurns(): SessionAction[] {
    const actions: SessionAction[] = [];
    for (let turn = this.#turns[0]; turn && this.#isOver(turn); turn = this.#turns[0]) {
      actions.push(this.#done(turn));
      this.#turns.shift();
    }
    return actions;
  }

  #done({ contextId }: Turn): SessionAction {
    this.#hasEndedWithDone = this.#isEnding;
    return { kind: "done", contextId };
  }

  #isOver(turn: Turn): boolean {
    return turn.isClosed && turn.unfinished === 0 && !this.#buffer.some((buffered) => buffered.turn === turn);
  }

  #startNext(): Synthesis | undefined {
    if (this.#running) return undefined;
    this.#running = this.#queue.shift();
    return this.#running?.synthesis;
  }

  #abort(): SessionAction[] {
    const actions: SessionAction[] = this.#running ? [{ kind: "stop" }] : [];
    const turn = this.#running?.turn ?? this.#turns.at(-1);
    this.#running = undefined;
    this.#queue.length = 0;
    this.#buffer.length = 0;
    this.#turns.length = 0;
    if (turn) actions.push(this.#done(turn));
    return [...actions, ...this.#advance()];
  }

  /** Discards the buffer, and turns without committed text. The original service has the same behavior. */
  #clearBuffer(): SessionAction[] {
    this.#buffer.length = 0;
    this.#removeTurns((turn) => turn.hasSpoken);
    return this.#advance();
  }

  /** Removes a turn and its waiting text. */
  #drop(turn: Turn): void {
    const keep = <Waiting extends { readonly turn: Turn }>(list: Waiting[]) =>
      list.splice(0, list.length, ...list.filter((waiting) => waiting.turn !== turn));
    keep(this.#queue);
    keep(this.#buffer);
    this.#removeTurns((other) => other !== turn);
  }

  #removeTurns(keeps: (turn: Turn) => boolean): void {
    this.#turns.splice(0, this.#turns.length, ...this.#turns.filter(keeps));
  }

  #close(reason: CloseReason, actions: SessionAction[]): SessionAction[] {
    this.#isClosed = true;
    return [...actions, { kind: "close", reason }];
  }
}

function isSameMarkup(one: TextMarkup, other: TextMarkup): boolean {
  return (
    one.phonemizeBetweenBrackets === other.phonemizeBetweenBrackets &&
    one.inlineSpeedAlpha === other.inlineSpeedAlpha
  );
}
