import { acceptedTokensKey, api, children, tokenKey } from "../../config/contract/names.ts";
import { childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

/** The token that API pods send, and the tokens that model pods accept. */
export interface InternalToken {
  readonly token: string;
  /** The accepted tokens in the order of their creation. `token` is one of them. */
  readonly accepted: readonly string[];
  /**
   * The time at which the tokens last changed, in milliseconds since the epoch. It is `undefined` in a Secret
   * of an earlier operator version.
   */
  readonly changedAt: number | undefined;
  /** The value of the last rotation request that was fulfilled. */
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

/**
 * Reads the Secret. Returns `undefined` if an entry is missing, or if the token is not among the accepted
 * tokens.
 */
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

/**
 * The inputs of a rotation of the internal token. During a rotation, pods do not reject each other's
 * requests.
 */

export interface RotationTerms {
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  /** The value of the rotation request. Each new value requests another rotation. */
  readonly asked: string | undefined;
  /** The age at which a token is rotated automatically. 0 disables automatic rotation. */
  readonly everyMs: number;
  /** The longest time that a kubelet needs to update the mounted Secret in its pods. */
  readonly overlapMs: number;
  readonly newToken: () => string;
}

export interface TokenRotation {
  readonly internal: InternalToken;
  /** The time at which the next step is due, in milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/**
 * Takes at most one step of a rotation. Each step is one write. In the first step, model pods accept the new
 * token. In the second step, when all model pods have the new token, API pods send it. In the third step,
 * when no pod sends the old token, model pods no longer accept it. The Secret stores the progress, so a
 * rotation continues after a crash.
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
