import { createHash, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { acceptedTokensKey } from "../../config/contract/names.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";

/** Where a model tier finds the tokens that it takes from API tiers. */
export type TokenSource =
  /** A folder with a file `accepted`, one token a line; read again while it may have changed. */
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "fixed"; readonly tokens: readonly string[] };

/** A rotated token counts at most this long after the file has changed. */
const readAgainAfterMs = 1_000;

export class AcceptedTokens {
  readonly #source: TokenSource;
  readonly #onUnreadable: (error: unknown) => void;
  readonly #clock: Clock;
  #digests: readonly Buffer[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  /** Whoever comes while the tokens are read waits for them, or the first burst after a start would be refused. */
  #reading: Promise<void> = Promise.resolve();

  constructor(source: TokenSource, onUnreadable: (error: unknown) => void, clock: Clock = systemClock) {
    this.#source = source;
    this.#onUnreadable = onUnreadable;
    this.#clock = clock;
  }

  /** Judges an `Authorization` header; takes as long for a near miss as for a wild one. */
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
      this.#digests = []; // a token that cannot be read any more was taken back
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
