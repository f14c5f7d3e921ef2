import { createHmac, randomBytes } from "node:crypto";

/** The state of one sign-in in progress. Only the browser that started the sign-in can finish it. */
export interface Flow {
  readonly state: string;
  readonly nonce: string;
  /** The code verifier of PKCE (RFC 7636). */
  readonly verifier: string;
  /** The secret of the invitation that the sign-in uses. */
  readonly link: string | undefined;
}

export const longestFlowMs = 600_000;

const cookieForm = /^(\d{13})\.([\w-]{43})(?:\.([\w-]{43}))?$/;

/**
 * Starts a sign-in. The browser stores one secret in a cookie, and the server derives all other values from
 * this secret. Any replica can therefore finish the sign-in, and unauthenticated requests add no rows to the
 * database.
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

/** Reads the sign-in from the cookie. @returns undefined if the cookie is invalid or too old. */
export function readFlow(cookie: string, now: number): Flow | undefined {
  const [, begun, secret, link] = cookieForm.exec(cookie) ?? [];
  if (secret === undefined || now - Number(begun) > longestFlowMs) return undefined;
  return flowOf(secret, link);
}

function flowOf(secret: string, link: string | undefined): Flow {
  const derive = (purpose: string) => createHmac("sha256", secret).update(purpose).digest("base64url");
  return { state: derive("state"), nonce: derive("nonce"), verifier: derive("verifier"), link };
}
