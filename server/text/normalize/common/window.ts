/** A written word with its punctuation, as the input of the rules. */
export interface Word {
  readonly text: string;
  /** The punctuation before and after the word. */
  readonly before: string;
  readonly after: string;
}

/** The reading of one or several written words. */
export interface WordReading {
  /** The spoken words for each written word of the reading, in order. */
  readonly spoken: readonly string[];
  /** The punctuation before the first word, if the reading changes it. */
  readonly before?: string;
  /** The punctuation after the last word, if the reading changes it. */
  readonly after?: string;
}

/** A word with its neighbors. A rule can read only these words, so its work is bounded. */
export class NormalizationWindow {
  readonly word: Word;
  readonly #past: readonly Word[];
  readonly #ahead: readonly Word[];

  /**
   * Creates a window.
   * @param past the words before the word, the nearest last.
   * @param ahead the words after the word, the nearest first.
   */
  constructor(past: readonly Word[], word: Word, ahead: readonly Word[]) {
    this.#past = past;
    this.word = word;
    this.#ahead = ahead;
  }

  get text(): string {
    return this.word.text;
  }

  /** Returns the word at a distance: −1 is the previous word, and 1 is the next word. */
  at(distance: number): Word | undefined {
    if (distance === 0) return this.word;
    return distance > 0 ? this.#ahead[distance - 1] : this.#past[this.#past.length + distance];
  }

  /** Returns the text of the word at a distance, or "" if there is no word. */
  textAt(distance: number): string {
    return this.at(distance)?.text ?? "";
  }

  /**
   * Returns the window with a changed word.
   * @param consumed the number of following words that the changed word includes.
   */
  with(word: Partial<Word>, consumed = 0): NormalizationWindow {
    return new NormalizationWindow(this.#past, { ...this.word, ...word }, this.#ahead.slice(consumed));
  }

  /** Returns a window of another word, with the same words before it and no words after it. */
  ending(text: string): NormalizationWindow {
    return new NormalizationWindow(this.#past, { text, before: "", after: "" }, []);
  }

  /** Returns the window of a later word. */
  from(distance: number): NormalizationWindow | undefined {
    const word = this.at(distance);
    if (!word) return undefined;
    return new NormalizationWindow(
      [...this.#past, this.word, ...this.#ahead.slice(0, distance - 1)],
      word,
      this.#ahead.slice(distance),
    );
  }

  /** Returns whether only a space separates a word from the next word. */
  joins(distance = 0): boolean {
    return this.at(distance)?.after === "" && this.at(distance + 1)?.before === "";
  }
}

export function isCapitalized(text: string): boolean {
  return /^\p{Lu}/u.test(text);
}

/**
 * Returns whether the dot after an abbreviation also ends the sentence. The dot ends the sentence if no word
 * follows, or if the next word starts with a capital letter.
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

/** Joins all nonempty parts with single spaces. */
export function phrase(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}
