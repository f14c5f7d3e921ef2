import * as oidc from "openid-client";
import { unknownActor } from "../../store/unknown-actor.ts";
import { englishTexts, type Texts } from "../languages/english.ts";

/** A failed sign-in, with a status, a message for the user, and a reason for the log. */
export class SignInError extends Error {
  readonly status: 400 | 403 | 502 | 503;
  readonly say: (words: Texts) => string;
  /** The reason for the administrator, which contains no secrets. */
  readonly reason: string;
  /** The name of the user in the audit log, if the provider has confirmed the identity. */
  readonly who: string;

  constructor(
    status: SignInError["status"],
    say: (words: Texts) => string,
    reason: string,
    who = unknownActor,
  ) {
    super(say(englishTexts));
    this.name = "SignInError";
    this.status = status;
    this.say = say;
    this.reason = reason;
    this.who = who;
  }
}

/**
 * Converts an error of the OpenID Connect library. The reason contains only the kind of the error, because other
 * fields may contain a code, a token or a claim.
 */
export function signInErrorOf(error: unknown, provider: string): unknown {
  if (error instanceof oidc.AuthorizationResponseError) {
    const reason = codeOf(error.error);
    return new SignInError(400, (words) => words.provider.ended(provider, reason), reason);
  }
  if (error instanceof oidc.ResponseBodyError) return ofTokenEndpoint(codeOf(error.error), provider);
  if (error instanceof oidc.WWWAuthenticateChallengeError)
    return ofTokenEndpoint(`status ${error.status}`, provider);
  if (isUnreachable(error)) {
    const reason = `the provider is not reachable: ${systemCode(error)}`;
    return new SignInError(503, (words) => words.provider.unreachable(provider), reason);
  }
  if (error instanceof oidc.ClientError) return ofAnswer(error, provider);
  return error;
}

function ofTokenEndpoint(reason: string, provider: string): SignInError {
  if (reason === "invalid_grant") {
    return new SignInError(400, (words) => words.provider.late, reason);
  }
  return new SignInError(502, (words) => words.provider.unknownServer(provider, reason), reason);
}

const notAProvider: readonly unknown[] = [
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "OAUTH_PARSE_ERROR",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
];

function ofAnswer({ code, message }: oidc.ClientError, provider: string): SignInError {
  const reason = `${code ?? "unknown"}: ${message}`;
  if (notAProvider.includes(code)) {
    return new SignInError(502, (words) => words.provider.notAProvider(provider), reason);
  }
  return new SignInError(400, (words) => words.provider.unfitting(provider), reason);
}

/** Returns whether the provider is unreachable. */
function isUnreachable(error: unknown): error is Error {
  if (error instanceof oidc.ClientError)
    return error.code === "OAUTH_TIMEOUT" || error.code === "OAUTH_ABORT";
  return error instanceof TypeError && error.message === "fetch failed";
}

function systemCode({ cause }: Error): string {
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "no response in time";
}

/** Returns an error code of OAuth unchanged. Other text may contain anything, and becomes `unknown`. */
function codeOf(text: string): string {
  return /^[a-z_]{1,64}$/.test(text) ? text : "unknown";
}
