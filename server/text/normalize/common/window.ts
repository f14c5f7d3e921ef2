/** A written word with its punctuation, the input of the rules. */
export interface Word {
  readonly text: string;
  /** Punctuation around it. */
  readonly before: string;
  readonly after: string;
}

/** The reading of one or several written words. */
export interface WordReading {
  /** The spoken words for each consumed word, in order. Consumed words are not read again. */
  readonly spoken: readonly string[];
  /** Punctuation before the first word, if it changes. */
  readonly before?: string;
  /** Punctuation after the last word, if it changes. */
  readonly after?: string;
}

/** A word with its neighbors. A rule sees only these, so its work is bounded. */
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

  /** The text of the word, or "" beyond the ends. */
  textAt(distance: number): string {
    return this.at(distance)?.text ?? "";
  }

  /** The same window with another word at its center. The `taken` words after it belong to that word. */
  with(word: Partial<Word>, taken = 0): NormalizationWindow {
    return new NormalizationWindow(this.#past, { ...this.word, ...word }, this.#ahead.slice(taken));
  }

  /** A window with another word after the same words, and no words after it. */
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

  /** Whether only a space separates a word from the next one. */
  joins(distance = 0): boolean {
    return this.at(distance)?.after === "" && this.at(distance + 1)?.before === "";
  }
}

export function isCapitalized(text: string): boolean {
  return /^\p{Lu}/u.test(text);
}

/**
 * Whether the dot after an abbreviation also ends the sentence: no word follows, or one with a capital
 * letter.
 */
export function endsSentence(window: NormalizationWindow, distance: number): boolean {
  const next = window.at(distance + 1);
  return !next || isCapitalized(next.text);
}

/** Distributes spoken words over written words, in order and as evenly as possible. */
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
