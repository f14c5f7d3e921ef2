import { type ErrorCode, Failure, type FailureOptions } from "../../contract/errors.ts";
import { AccountError } from "../../store/accounts/accounts.ts";
import { LexiconError } from "../../store/lexicon.ts";
import { englishTexts, type Texts } from "./english.ts";

/** A failure of the dashboard with a message in the language of the page. */
export class Refusal extends Failure {
  readonly say: (words: Texts) => string;

  constructor(code: ErrorCode, say: (words: Texts) => string, options: FailureOptions = {}) {
    super(code, say(englishTexts), options);
    this.name = "Refusal";
    this.say = say;
  }
}

/**
 * Returns the message of an error that the user can correct: an invalid form field, or an error of the
 * stores. The result is undefined for other errors.
 */
export function problemIn(error: unknown, words: Texts): string | undefined {
  if (error instanceof AccountError) return words.users.refused(error);
  if (error instanceof LexiconError) return words.words.refused(error);
  return error instanceof Refusal && error.code === "invalid_request" ? error.say(words) : undefined;
}

export function describeFailure(failure: Failure, words: Texts): string {
  return failure instanceof Refusal ? failure.say(words) : words.failures.describe(failure);
}
