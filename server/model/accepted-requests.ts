/** Counts the accepted requests, from the decision to serve them until their responses are closed. */
export class AcceptedRequests {
  #count = 0;
  #idle = Promise.withResolvers<void>();

  /**
   * Adds a request, and returns a function that removes the request. Further calls of that function have no
   * effect.
   */
  add(): () => void {
    if (this.#count === 0) this.#idle = Promise.withResolvers();
    this.#count++;
    let isRemoved = false;
    return () => {
      if (isRemoved) return;
      isRemoved = true;
      this.#count--;
      if (this.#count === 0) this.#idle.resolve();
    };
  }

  /** Resolves when no accepted request is left. */
  async idle(): Promise<void> {
    while (this.#count > 0) await this.#idle.promise;
  }
}
