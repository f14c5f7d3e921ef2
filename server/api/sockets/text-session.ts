import { countCodePoints } from "../request/code-points.ts";
import type { ClearMode } from "../request/socket-options.ts";
import { divide, type SegmentationOptions, splitReady } from "./segmentation.ts";

/** A client's name of its current text; null before it gave one. */
export type ContextId = string | null;

/** Interpretation of the brackets in one text, if it differs from the socket's settings. */
export interface TextMarkup {
  readonly phonemizeBetweenBrackets?: boolean;
  readonly inlineSpeedAlpha?: string;
}

/** One request to the model tier. */
export interface Synthesis {
  readonly number: number;
  readonly contextId: ContextId;
  readonly text: string;
  readonly markup: TextMarkup;
}

/** An action for the connection. Actions are executed in the order in which they were returned. */
export type SessionAction =
  | { readonly kind: "speak"; readonly synthesis: Synthesis }
  /** Stops the running synthesis. Nothing more of it is sent. */
  | { readonly kind: "stop" }
  | { readonly kind: "done"; readonly contextId: ContextId }
  | { readonly kind: "close"; readonly reason: CloseReason };

/** `ended`: the client sent `eos`. `draining`: the server shuts down. `tooLong`: the text exceeds a limit. */
export type CloseReason = "ended" | "draining" | "tooLong";

export interface SessionOptions extends SegmentationOptions {
  readonly clearMode: ClearMode;
  /** Highest number of waiting characters, committed or not. */
  readonly longestBacklog: number;
}

export interface ArrivedText {
  readonly text: string;
  /** Null continues the current context. */
  readonly contextId: ContextId;
  readonly markup?: TextMarkup;
}

/** Everything that ends in one `done`: the texts of one context up to a flush. */
interface Turn {
  readonly contextId: ContextId;
  /** No more text can be added. `done` follows its last audio. */
  isClosed: boolean;
  /** Syntheses that are queued or running. */
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
 * The state of one socket with streamed text: text is buffered, committed to a queue and synthesized, one
 * synthesis at a time. Each method handles one event and returns the resulting actions. It uses no network
 * and no clock.
 */
export class TextSession {
  readonly #options: SessionOptions;
  readonly #buffer: BufferedText[] = [];
  readonly #queue: CommittedText[] = [];
  readonly #turns: Turn[] = [];
  #running: CommittedText | undefined;
  #contextId: ContextId = null;
  #syntheses = 0;
  /** The client sent `eos`. */
  #isEnding = false;
  /** Whether a `done` was sent since then, because the last event before the close is always one. */
  #hasEndedWithDone = false;
  #isDraining = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Nothing is being synthesized, waiting, or still to be sent. */
  get isIdle(): boolean {
    return this.#turns.length === 0;
  }

  /** Text arrived. A new context ID ends the previous turn. */
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

  /** Everything in the buffer is synthesized, and its turn ends. */
  flush(): SessionAction[] {
    if (this.#isClosed || this.#isEnding) return [];
    this.#commitBuffer();
    this.#closeTurn();
    return this.#advance();
  }

  /** Discards text that is not synthesized yet; with `abort` also the running synthesis. */
  clear(): SessionAction[] {
    if (this.#isClosed || this.isIdle) return [];
    return this.#options.clearMode === "abort" ? this.#abort() : this.#clearBuffer();
  }

  /** The client sends no more text. The socket closes after everything is synthesized. */
  eos(): SessionAction[] {
    if (this.#isClosed || this.#isEnding) return [];
    this.#commitBuffer();
    this.#closeTurn();
    this.#isEnding = true;
    return this.#advance();
  }

  /** The client was silent for long: a turn that still waits for its flush ends without one. */
  silence(): SessionAction[] {
    const turn = this.#openTurnNow();
    if (this.#isClosed || !turn || !this.#endsBySilence(turn)) return [];
    return this.flush();
  }

  /** The server shuts down: the socket closes as soon as the client has received everything. */
  drain(): SessionAction[] {
    if (this.#isClosed) return [];
    this.#isDraining = true;
    return this.#advance();
  }

  /** The synthesis is complete. Reports about a stopped one are ignored. */
  finished(number: number): SessionAction[] {
    const running = this.#takeRunning(number);
    if (!running) return [];
    running.turn.unfinished -= 1;
    return this.#advance();
  }

  /** The synthesis failed, and the client was sent an error, which replaces the `done` of its turn. */
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

  /** Waiting characters. A turn without text counts as one, so that empty turns are bounded too. */
  #backlog(): number {
    const queued = this.#queue.map(({ synthesis }) => synthesis);
    return [...queued, ...this.#buffer].reduce((sum, { text }) => sum + text.length, this.#turns.length);
  }

  /**
   * Silence ends a turn with a name. While the server drains it ends every turn, so that the socket can
   * close.
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

  /** While no synthesis runs or waits, commits as much of the buffer as the mode allows. */
  #commitReady(): void {
    while (!this.#running && this.#queue.length === 0) {
      const [first, second] = this.#buffer;
      if (!first) return;
      // Text that cannot continue does not wait for the end of its sentence.
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

  /** Without a context ID, `done` follows as soon as all received text is synthesized. */
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

  /** A turn without committed text is forgotten together with its text, as in the original service. */
  #clearBuffer(): SessionAction[] {
    this.#buffer.length = 0;
    this.#removeTurns((turn) => turn.hasSpoken);
    return this.#advance();
  }

  /** Removes a turn with all of its waiting text. */
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
