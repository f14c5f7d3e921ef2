import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { acceptedTokensKey } from "../../config/contract/names.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";

/** Reads the tokens that a model tier accepts from API tiers. */
export type TokenSource =
  /** A folder with a file `accepted`, one token per line. It is read again after it may have changed. */
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "fixed"; readonly tokens: readonly string[] };

/** A rotated token is accepted at most this long after the file changed. */
const readAgainAfterMs = 1_000;

export class AcceptedTokens {
  readonly #source: TokenSource;
  readonly #onUnreadable: (error: unknown) => void;
  readonly #clock: Clock;
  #digests: readonly Buffer[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  /**
   * Requests wait while the tokens are read for the first time, otherwise the first burst after a start would
   * be rejected.
   */
  #reading: Promise<void> = Promise.resolve();

  constructor(source: TokenSource, onUnreadable: (error: unknown) => void, clock: Clock = systemClock) {
    this.#source = source;
    this.#onUnreadable = onUnreadable;
    this.#clock = clock;
  }

  /** Verifies an `Authorization` header in constant time. */
  async accepts(header: string | undefined): Promise<boolean> {
    await this.#refresh();
    const token = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
    if (token === undefined) return false;
    const given = digest(token);
    let found = false;
    for (const known of this.#digests) found = timingSafeEqual(known, given) || found;
    return found;
  }

  #refresh(): Promise<void> {
    const now = this.#clock.monotonicMs();
    if (now - this.#readAt >= readAgainAfterMs) {
      this.#readAt = now;
      this.#reading = this.#readDigests();
    }
    return this.#reading;
  }

  async #readDigests(): Promise<void> {
    try {
      this.#digests = (await this.#read()).map(digest);
    } catch (error) {
      this.#digests = []; // A token file that is not readable any more was withdrawn.
      this.#onUnreadable(error);
    }
  }

  async #read(): Promise<readonly string[]> {
    if (this.#source.kind === "fixed") return this.#source.tokens;
    const text = await readFile(join(this.#source.path, acceptedTokensKey), "utf8");
    return text.split(/\s+/).filter((token) => token !== "");
  }
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
