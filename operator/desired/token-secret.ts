import { acceptedTokensKey, api, children, tokenKey } from "../../config/contract/names.ts";
import { childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

/** The token that API pods send, and the tokens that model pods accept. */
export interface InternalToken {
  readonly token: string;
  /** In the order in which they were made; `token` is among them. */
  readonly accepted: readonly string[];
  /** When either last changed, milliseconds since the epoch; `undefined` in a Secret of an earlier operator. */
  readonly changedAt: number | undefined;
  /** The last request for a new token that was served. */
  readonly askedBy: string | undefined;
}

const annotations = {
  changedAt: `${api.group}/token-changed-at`,
  askedBy: `${api.group}/token-asked-by`,
} as const;

export function tokenSecret(owner: TtsDeployment, internal: InternalToken): KubernetesObject {
  const { token, accepted, changedAt, askedBy } = internal;
  const notes = {
    ...(changedAt !== undefined && { [annotations.changedAt]: new Date(changedAt).toISOString() }),
    ...(askedBy !== undefined && { [annotations.askedBy]: askedBy }),
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(owner, children.token(owner.metadata.name), "token", { annotations: notes }),
    type: "Opaque",
    data: { [tokenKey]: base64(token), [acceptedTokensKey]: base64(accepted.join("\n")) },
  };
}

/** `undefined` when the Secret lacks an entry, or its own token is not among those accepted. */
export function readTokenSecret({ metadata, ...secret }: KubernetesObject): InternalToken | undefined {
  const data = (secret.data ?? {}) as Record<string, string>;
  const token = text(data[tokenKey]);
  const accepted = text(data[acceptedTokensKey]).split("\n");
  if (token === "" || !accepted.includes(token)) return undefined;
  const changedAt = Date.parse(metadata.annotations?.[annotations.changedAt] ?? "");
  return {
    token,
    accepted,
    changedAt: Number.isNaN(changedAt) ? undefined : changedAt,
    askedBy: metadata.annotations?.[annotations.askedBy],
  };
}

function base64(plain: string): string {
  return Buffer.from(plain, "utf8").toString("base64");
}

function text(encoded: string | undefined): string {
  return Buffer.from(encoded ?? "", "base64").toString("utf8");
}

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
