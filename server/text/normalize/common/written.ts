/** The classes of written text, before a language puts them into words. */

/** A number as written: digits, never a float, so that nothing is lost. */
export interface Amount {
  readonly sign: "" | "-" | "+";
  /** "" in ".5". */
  readonly whole: string;
  readonly fraction: string;
  readonly mark: "." | ",";
  /** Its thousands are set apart. */
  readonly grouped: boolean;
}

export interface CalendarDate {
  readonly day: number;
  /** 1 to 12. */
  readonly month: number;
  /** Digits; "" where none is given. */
  readonly year: string;
}

export interface ClockTime {
  readonly hour: number;
  readonly minute: number;
  readonly second: number | undefined;
  readonly half: "am" | "pm" | undefined;
  /** "Uhr" or "h" is written. */
  readonly marked: boolean;
  /** It is the first of two: the word for the hour may wait. */
  readonly first: boolean;
}

export interface Fraction {
  /** Whole number before it, as digits; "" for none. */
  readonly whole: string;
  readonly over: number;
  readonly under: number;
  /** The word that follows. */
  readonly noun: string;
}
