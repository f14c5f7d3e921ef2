/** The classes of written text, which a language converts to words. */

/** A number in digits as written, never a float, so that no digit is lost. */
export interface Amount {
  readonly sign: "" | "-" | "+";
  /** "" in ".5". */
  readonly whole: string;
  readonly fraction: string;
  readonly mark: "." | ",";
  /** Whether its thousands are separated. */
  readonly grouped: boolean;
}

export interface CalendarDate {
  readonly day: number;
  /** 1 to 12. */
  readonly month: number;
  /** Digits, or "" without a year. */
  readonly year: string;
}

export interface ClockTime {
  readonly hour: number;
  readonly minute: number;
  readonly second: number | undefined;
  readonly half: "am" | "pm" | undefined;
  /** Whether "Uhr" or "h" is written. */
  readonly marked: boolean;
  /** Whether it is the first of two times, in which the word for the hour may be omitted. */
  readonly first: boolean;
}

export interface Fraction {
  /** The integer before the fraction as digits, or "" for none. */
  readonly whole: string;
  readonly over: number;
  readonly under: number;
  /** The word that follows. */
  readonly noun: string;
}
