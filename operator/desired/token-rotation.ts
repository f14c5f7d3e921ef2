import type { InternalToken } from "./token-secret.ts";

/** How the internal token is replaced so that no pod ever refuses another. */

export interface RotationTerms {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** A request for a new token. Each new value requests another rotation. */
  readonly asked: string | undefined;
  /** Age at which a token is replaced unasked; 0 is never. */
  readonly everyMs: number;
  /** Longest time that every kubelet takes to renew its pods' files. */
  readonly overlapMs: number;
  readonly newToken: () => string;
}

export interface TokenRotation {
  readonly internal: InternalToken;
  /** When the next step is due, milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/**
 * One step at most, each a single write: the next token is accepted by model pods; then, once all of them know it, sent by API
 * pods; then, once none sends the old one, alone accepted. Where it stands is read from the Secret, so a crash anywhere loses nothing.
 */
export function rotate(held: InternalToken, terms: RotationTerms): TokenRotation {
  const known = { ...held, changedAt: held.changedAt ?? terms.now };
  const dueAt = dueOf(known, terms);
  const internal = dueAt !== undefined && dueAt <= terms.now ? step(known, terms) : known;
  return { internal, changesAt: dueOf(internal, terms) };
}

export function firstToken({ now, asked, newToken }: RotationTerms): InternalToken {
  const token = newToken();
  return { token, accepted: [token], changedAt: now, askedBy: asked };
}

function dueOf(held: InternalToken, { now, asked, everyMs, overlapMs }: RotationTerms): number | undefined {
  const since = held.changedAt ?? now;
  if (held.accepted.length > 1) return since + overlapMs;
  if (asked !== undefined && asked !== held.askedBy) return now;
  return everyMs > 0 ? since + everyMs : undefined;
}

function step(held: InternalToken, { now, asked, newToken }: RotationTerms): InternalToken {
  const { token, accepted } = held;
  const newest = accepted.at(-1) ?? token;
  if (newest !== token) return { ...held, token: newest, changedAt: now };
  if (accepted.length > 1) return { ...held, accepted: [token], changedAt: now };
  return { token, accepted: [token, newToken()], changedAt: now, askedBy: asked };
}
