import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { acceptedTokensKey } from "../../config/contract/names.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";

/** The source of the internal tokens that a model tier accepts. */
export type TokenSource =
  /**
   * A folder with a file `accepted`, which has one token on each line. The tier reads the file again at
   * intervals, because the file may change.
   */
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "fixed"; readonly tokens: readonly string[] };

/** The interval at which the file is read. A removed token is accepted for at most this time. */
const readAgainAfterMs = 1_000;

export class AcceptedTokens {
  readonly #source: TokenSource;
  readonly #onUnreadable: (error: unknown) => void;
  readonly #clock: Clock;
  #digests: readonly Buffer[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  /**
   * The read of the tokens that is in progress. Requests wait for this read, so that the first requests after
   * the start are not rejected.
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
    const received = digest(token);
    let found = false;
    for (const accepted of this.#digests) found = timingSafeEqual(accepted, received) || found;
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
      // No token is accepted while the file cannot be read, because the tokens may have been withdrawn.
      this.#digests = [];
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
