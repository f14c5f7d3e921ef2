/** Removes the tokens that a model writes before its speech. */
export class SpeechStart {
  readonly #startAfter: number | undefined;
  #hasStarted: boolean;

  /**
   * @param startAfter the token before the speech. If `startAfter` is undefined, the speech starts with the
   * first token.
   */
  constructor(startAfter: number | undefined) {
    this.#startAfter = startAfter;
    this.#hasStarted = startAfter === undefined;
  }

  /** Returns the tokens that belong to the speech. */
  push(tokens: readonly number[]): readonly number[] {
    if (this.#hasStarted) return tokens;
    const at = tokens.indexOf(this.#startAfter ?? -1);
    if (at < 0) return [];
    this.#hasStarted = true;
    return tokens.slice(at + 1);
  }
}
