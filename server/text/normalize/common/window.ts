/** A written word as the rules see it. */
export interface Word {
  readonly text: string;
  /** Punctuation around it. */
  readonly before: string;
  readonly after: string;
}

/** How one or several written words are read. */
export interface WordReading {
  /** The spoken words for each consumed word, in order. Consumed words are not read again. */
  readonly spoken: readonly string[];
  /** Punctuation that stays before the first word, where it changes. */
  readonly before?: string;
  /** Punctuation that stays after the last word, where it changes. */
  readonly after?: string;
}

/** A word with those around it: a rule sees this and nothing else, so its work is bounded. */
export class NormalizationWindow {
  readonly word: Word;
  readonly #past: readonly Word[];
  readonly #ahead: readonly Word[];

  /** @param past words before, the nearest last. @param ahead words after, the nearest first. */
  constructor(past: readonly Word[], word: Word, ahead: readonly Word[]) {
    this.#past = past;
    this.word = word;
    this.#ahead = ahead;
  }

  get text(): string {
    return this.word.text;
  }

  /** The word at a distance: −1 is the one before, 1 the next. */
  at(distance: number): Word | undefined {
    if (distance === 0) return this.word;
    return distance > 0 ? this.#ahead[distance - 1] : this.#past[this.#past.length + distance];
  }

  /** Its text, or "" beyond the ends. */
  textAt(distance: number): string {
    return this.at(distance)?.text ?? "";
  }

  /** The same place with another word there. `taken` words after it belong to that word. */
  with(word: Partial<Word>, taken = 0): NormalizationWindow {
    return new NormalizationWindow(this.#past, { ...this.word, ...word }, this.#ahead.slice(taken));
  }

  /** Another word after the same words, with nothing behind it. */
  ending(text: string): NormalizationWindow {
    return new NormalizationWindow(this.#past, { text, before: "", after: "" }, []);
  }

  /** The window of a later word. */
  from(distance: number): NormalizationWindow | undefined {
    const word = this.at(distance);
    if (!word) return undefined;
    return new NormalizationWindow(
      [...this.#past, this.word, ...this.#ahead.slice(0, distance - 1)],
      word,
      this.#ahead.slice(distance),
    );
  }

  /** Nothing stands between a word and the next one but a space. */
  joins(distance = 0): boolean {
    return this.at(distance)?.after === "" && this.at(distance + 1)?.before === "";
  }
}

export function isCapitalized(text: string): boolean {
  return /^\p{Lu}/u.test(text);
}

/** The dot after an abbreviation also ends the sentence: nothing follows, or a capital letter does. */
export function endsSentence(window: NormalizationWindow, distance: number): boolean {
  const next = window.at(distance + 1);
  return !next || isCapitalized(next.text);
}

/** Shares words out over written words, in order and as evenly as they go. */
export function spreadOverWords(words: string, count: number): string[] {
  const all = words.split(" ").filter((word) => word !== "");
  const step = Math.max(1, all.length / count);
  return Array.from({ length: count }, (_, i) =>
    all.slice(Math.round(i * step), i === count - 1 ? undefined : Math.round((i + 1) * step)).join(" "),
  );
}

/** Joins the parts that are not empty with single spaces. */
export function phrase(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}
