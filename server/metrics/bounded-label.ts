/** Limits the values of a label that come from outside. Values beyond the limit are counted as `other`. */
export class BoundedLabel {
  readonly #limit: number;
  readonly #seen = new Set<string>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  of(value: string): string {
    if (this.#seen.has(value)) return value;
    if (this.#seen.size >= this.#limit) return "other";
    this.#seen.add(value);
    return value;
  }
}
