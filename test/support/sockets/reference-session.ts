import type { ClearMode } from "../../../server/api/request/socket-options.ts";
import type { ArrivedText, ContextId, SessionAction } from "../../../server/api/sockets/text-session.ts";
import { sentenceEnds } from "../../../server/contract/text/sentence-ends.ts";

type Mode = "bySentence" | "immediate" | "never";

/** One character that a client sent and that is not yet synthesized. */
interface Cell {
  readonly character: string;
  readonly turn: number;
  readonly markup: string;
  state: "buffered" | "queued" | "running";
  synthesis: number;
}

interface ReferenceTurn {
  readonly contextId: ContextId;
  isClosed: boolean;
  hasSpoken: boolean;
  isOver: boolean;
}

/** A rule performs at most one step on the whole state. It returns whether it performed a step. */
type Rule = () => boolean;

/**
 * A second, simple implementation of `TextSession` for comparison. Every character is a separate cell. After
 * each event, the rule with the highest priority that applies performs a step, until no rule applies. The
 * implementation has no limits on length.
 */
export class ReferenceSession {
  readonly #mode: Mode;
  readonly #clearMode: ClearMode;
  readonly #turns: ReferenceTurn[] = [];
  #cells: Cell[] = [];
  #current: ContextId = null;
  #syntheses = 0;
  #isEnding = false;
  #saidDoneSinceEos = false;
  #isDraining = false;
  #isClosed = false;
  #actions: string[] = [];

  constructor(mode: Mode, clearMode: ClearMode) {
    this.#mode = mode;
    this.#clearMode = clearMode;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The number of the running synthesis. */
  get running(): number | undefined {
    return this.#cells.find(({ state }) => state === "running")?.synthesis;
  }

  get isIdle(): boolean {
    return this.#live().length === 0;
  }

  text(arrived: ArrivedText): string[] {
    return this.#isEnding ? [] : this.#event(() => this.#arrive(arrived));
  }

  flush(): string[] {
    return this.#isEnding ? [] : this.#event(() => this.#flush());
  }

  eos(): string[] {
    if (this.#isEnding) return [];
    return this.#event(() => {
      this.#flush();
      this.#isEnding = true;
    });
  }

  clear(): string[] {
    if (this.isIdle) return [];
    return this.#event(() => {
      if (this.#clearMode === "abort") this.#abort();
      else this.#forgetBuffer();
    });
  }

  silence(): string[] {
    const open = this.#openTurn();
    const turn = open === undefined ? undefined : this.#turns[open];
    if (!turn) return [];
    const holdsText = this.#mode === "never" && this.#buffered().length > 0;
    return this.#isDraining || (turn.contextId !== null && !holdsText) ? this.flush() : [];
  }

  drain(): string[] {
    return this.#event(() => {
      this.#isDraining = true;
    });
  }

  finished(number: number): string[] {
    if (number !== this.running) return [];
    return this.#event(() => {
      this.#cells = this.#cells.filter(({ state }) => state !== "running");
    });
  }

  failed(number: number): string[] {
    if (number !== this.running) return [];
    return this.#event(() => {
      const failed = this.#cells.find(({ state }) => state === "running")?.turn ?? -1;
      this.#cells = this.#cells.filter(({ turn }) => turn !== failed);
      this.#end(failed);
    });
  }

  #event(change: () => void): string[] {
    if (this.#isClosed) return [];
    this.#actions = [];
    change();
    const rules: readonly Rule[] = [
      () => this.#commitReadyText(),
      () => this.#closeAnonymous(),
      () => this.#sayDone(),
      () => this.#startNext(),
      () => this.#closeSocket(),
    ];
    while (rules.some((rule) => rule()));
    return this.#actions;
  }

  #arrive({ text, contextId, markup = {} }: ArrivedText): void {
    const isNew = contextId !== null && contextId !== this.#current;
    if (isNew) this.#closeTurn();
    this.#current = contextId ?? this.#current;
    const isBlank = /^\s*$/u.test(text);
    if (isNew || !isBlank) this.#openTurnIfNone();
    const turn = this.#openTurn();
    const last = this.#buffered().at(-1);
    const continues = last !== undefined && last.turn === turn;
    if (turn === undefined || (isBlank && !continues)) return;
    const ownMarkup = isBlank && last ? last.markup : JSON.stringify(markup);
    for (const character of text) {
      this.#cells.push({ character, turn, markup: ownMarkup, state: "buffered", synthesis: -1 });
    }
  }

  #buffered(): Cell[] {
    return this.#cells.filter(({ state }) => state === "buffered");
  }

  #live(): ReferenceTurn[] {
    return this.#turns.filter(({ isOver }) => !isOver);
  }

  #openTurn(): number | undefined {
    const at = this.#turns.findIndex(({ isClosed, isOver }) => !isClosed && !isOver);
    return at < 0 ? undefined : at;
  }

  #openTurnIfNone(): void {
    if (this.#openTurn() !== undefined) return;
    this.#turns.push({ contextId: this.#current, isClosed: false, hasSpoken: false, isOver: false });
  }

  #closeTurn(): void {
    const turn = this.#turns[this.#openTurn() ?? -1];
    if (turn) turn.isClosed = true;
  }

  #end(turn: number): void {
    const ended = this.#turns[turn];
    if (ended) ended.isOver = true;
  }

  /** Returns the first buffered characters with the same context and markup. */
  #firstGroup(): Cell[] {
    const buffered = this.#buffered();
    const [first] = buffered;
    const end = buffered.findIndex(({ turn, markup }) => turn !== first?.turn || markup !== first.markup);
    return end < 0 ? buffered : buffered.slice(0, end);
  }

  #queue(cells: readonly Cell[]): void {
    const text = textOf(cells).trim();
    const turn = this.#turns[cells[0]?.turn ?? -1];
    if (text !== "" && turn) turn.hasSpoken = true;
    else this.#cells = this.#cells.filter((cell) => !cells.includes(cell));
    if (text === "") return;
    for (const cell of cells) Object.assign(cell, { state: "queued", synthesis: this.#syntheses });
    this.#syntheses += 1;
  }

  #flush(): void {
    while (this.#buffered().length > 0) this.#queue(this.#firstGroup());
    this.#closeTurn();
  }

  #abort(): void {
    const running = this.#cells.find(({ state }) => state === "running");
    if (running) this.#actions.push("stop");
    const turn = this.#turns[running?.turn ?? -1] ?? this.#live().at(-1);
    this.#cells = [];
    for (const live of this.#live()) live.isOver = true;
    if (turn) this.#pushDone(turn.contextId);
  }

  #forgetBuffer(): void {
    this.#cells = this.#cells.filter(({ state }) => state !== "buffered");
    for (const turn of this.#live()) if (!turn.hasSpoken) turn.isOver = true;
  }

  #commitReadyText(): boolean {
    if (this.#mode === "never" || this.#cells.some(({ state }) => state !== "buffered")) return false;
    const group = this.#firstGroup();
    const isLast = group.length === this.#cells.length && !this.#turns[group[0]?.turn ?? -1]?.isClosed;
    const ready = this.#mode === "immediate" || !isLast ? group.length : lastEnd(textOf(group));
    if (ready === 0) return false;
    this.#queue(group.slice(0, ready));
    const rest = group.slice(ready);
    const words = rest.findIndex(({ character }) => !/\s/u.test(character));
    const blank = words < 0 ? rest : rest.slice(0, words);
    this.#cells = this.#cells.filter((cell) => !blank.includes(cell));
    return true;
  }

  #closeAnonymous(): boolean {
    const open = this.#openTurn();
    const turn = this.#turns[open ?? -1];
    if (this.#mode === "never" || turn?.contextId !== null || !turn.hasSpoken) return false;
    if (this.#cells.some((cell) => cell.turn === open)) return false;
    turn.isClosed = true;
    return true;
  }

  #sayDone(): boolean {
    const first = this.#turns.findIndex(({ isOver }) => !isOver);
    const turn = this.#turns[first];
    if (!turn?.isClosed || this.#cells.some((cell) => cell.turn === first)) return false;
    turn.isOver = true;
    this.#pushDone(turn.contextId);
    return true;
  }

  #pushDone(contextId: ContextId): void {
    this.#actions.push(`done ${contextId}`);
    this.#saidDoneSinceEos = this.#isEnding;
  }

  #startNext(): boolean {
    const queued = this.#cells.filter(({ state }) => state === "queued");
    if (this.running !== undefined || queued.length === 0) return false;
    const number = Math.min(...queued.map(({ synthesis }) => synthesis));
    const cells = queued.filter(({ synthesis }) => synthesis === number);
    for (const cell of cells) cell.state = "running";
    const contextId = this.#turns[cells[0]?.turn ?? -1]?.contextId;
    this.#actions.push(`speak ${number} ${contextId} ${cells[0]?.markup} ${textOf(cells).trim()}`);
    return true;
  }

  #closeSocket(): boolean {
    if (this.#isClosed || !this.isIdle || !(this.#isEnding || this.#isDraining)) return false;
    if (this.#isEnding && !this.#saidDoneSinceEos) this.#pushDone(this.#current);
    this.#actions.push(this.#isEnding ? "close ended" : "close draining");
    this.#isClosed = true;
    return true;
  }
}

function textOf(cells: readonly Cell[]): string {
  return cells.map(({ character }) => character).join("");
}

/**
 * Returns the end of the last complete sentence, counted in code points, because each code point is a cell.
 */
function lastEnd(text: string): number {
  const end = sentenceEnds(text, { language: "eng", commas: false }).at(-1) ?? 0;
  return [...text.slice(0, end)].length;
}

/** Describes an action of `TextSession` in the form of the reference. */
export function describeAction(action: SessionAction): string {
  switch (action.kind) {
    case "speak": {
      const { number, contextId, markup, text } = action.synthesis;
      return `speak ${number} ${contextId} ${JSON.stringify(markup)} ${text}`;
    }
    case "done":
      return `done ${action.contextId}`;
    case "close":
      return `close ${action.reason}`;
    case "stop":
      return "stop";
  }
}
