import { createHmac, randomBytes } from "node:crypto";

/** One sign-in that is under way, bound to the browser that began it. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636). */
  readonly verifier: string;
  /** The secret of the invitation that it is to use up. */
  readonly link: string | undefined;
}

export const longestFlowMs = 600_000;

const cookieForm = /^(\d{13})\.([\w-]{43})(?:\.([\w-]{43}))?$/;

/**
 * What the browser keeps meanwhile is one secret, of which all else is made: any replica can finish what another began, and nobody
 * who knocks fills a table.
 */
export function beginFlow(
  link: string | undefined,
  now: number,
): { readonly cookie: string; readonly flow: Flow } {
  const secret = randomBytes(32).toString("base64url");
  return {
    cookie: [now, secret, ...(link === undefined ? [] : [link])].join("."),
    flow: flowOf(secret, link),
  };
}

/** @returns undefined where it is none, or too old. */
export function readFlow(cookie: string, now: number): Flow | undefined {
  const [, begun, secret, link] = cookieForm.exec(cookie) ?? [];
  if (secret === undefined || now - Number(begun) > longestFlowMs) return undefined;
  return flowOf(secret, link);
}

function flowOf(secret: string, link: string | undefined): Flow {
  const derive = (what: string) => createHmac("sha256", secret).update(what).digest("base64url");
  return { state: derive("state"), nonce: derive("nonce"), verifier: derive("verifier"), link };
}
