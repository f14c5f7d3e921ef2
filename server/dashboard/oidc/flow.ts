import { createHmac, randomBytes } from "node:crypto";

/** One sign-in in progress, bound to its browser. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  /** Code verifier of PKCE (RFC 7636). */
  readonly verifier: string;
  /** Secret of the invitation that the sign-in uses. */
  readonly link: string | undefined;
}

export const longestFlowMs = 600_000;

const cookieForm = /^(\d{13})\.([\w-]{43})(?:\.([\w-]{43}))?$/;

/**
 * The browser stores one secret, from which all other values are derived: any replica can finish a sign-in
 * that another started, and unauthenticated requests fill no table.
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

/** @returns undefined if it is invalid or too old. */
export function readFlow(cookie: string, now: number): Flow | undefined {
  const [, begun, secret, link] = cookieForm.exec(cookie) ?? [];
  if (secret === undefined || now - Number(begun) > longestFlowMs) return undefined;
  return flowOf(secret, link);
}

function flowOf(secret: string, link: string | undefined): Flow {
  const derive = (what: string) => createHmac("sha256", secret).update(what).digest("base64url");
  return { state: derive("state"), nonce: derive("nonce"), verifier: derive("verifier"), link };
}
