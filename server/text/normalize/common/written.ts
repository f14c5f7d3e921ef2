/** The classes of written text that a language converts to words. */

/** A number as its written digits. A floating-point number could not represent every digit. */
export interface Amount {
  readonly sign: "" | "-" | "+";
  /** The digits before the decimal mark, or "" in a number such as ".5". */
  readonly whole: string;
  readonly fraction: string;
  readonly mark: "." | ",";
  /** Whether the thousands are separated. */
  readonly grouped: boolean;
}

export interface CalendarDate {
  readonly day: number;
  /** The month, 1 to 12. */
  readonly month: number;
  /** The digits of the year, or "" without a year. */
  readonly year: string;
}

export interface ClockTime {
  readonly hour: number;
  readonly minute: number;
  readonly second: number | undefined;
  readonly half: "am" | "pm" | undefined;
  /** Whether the text contains "Uhr" or "h". */
  readonly marked: boolean;
  /** Whether the time is the first of two times. The first time may omit the word for the hour. */
  readonly first: boolean;
}

export interface Fraction {
  /** The digits of the integer before the fraction, or "" without an integer. */
  readonly whole: string;
  readonly over: number;
  readonly under: number;
  /** The word after the fraction. */
  readonly noun: string;
}
