/** Limits the number of values of a label that clients can choose. Further values are counted as `other`. */
export class BoundedLabel {
  readonly #limit: number;
  readonly #values = new Set<string>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  of(value: string): string {
    if (this.#values.has(value)) return value;
    if (this.#values.size >= this.#limit) return "other";
    this.#values.add(value);
    return value;
  }
}
