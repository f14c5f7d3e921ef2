import * as oidc from "openid-client";
import { unknownActor } from "../../store/unknown-actor.ts";
import { englishTexts, type Texts } from "../languages/english.ts";

/** A failed sign-in: a status, a sentence for the user, and a log message for the administrator. */
export class SignInError extends Error {
  readonly status: 400 | 403 | 502 | 503;
  readonly say: (words: Texts) => string;
  /** Short and without secrets. */
  readonly reason: string;
  /** The user, as far as proved. */
  readonly who: string;

  constructor(
    status: SignInError["status"],
    say: (words: Texts) => string,
    reason: string,
    who = unknownActor,
  ) {
    super(say(englishTexts));
    this.name = "SignInTrouble";
    this.status = status;
    this.say = say;
    this.reason = reason;
    this.who = who;
  }
}

/** Only the kind of the error is logged, because its other fields may quote a code, a token or a claim. */
export function signInErrorOf(error: unknown, provider: string): unknown {
  if (error instanceof oidc.AuthorizationResponseError) {
    const reason = codeOf(error.error);
    return new SignInError(400, (words) => words.provider.ended(provider, reason), reason);
  }
  if (error instanceof oidc.ResponseBodyError) return ofTokenEndpoint(codeOf(error.error), provider);
  if (error instanceof oidc.WWWAuthenticateChallengeError)
    return ofTokenEndpoint(`status ${error.status}`, provider);
  if (isUnreachable(error)) {
    const reason = `not reachable: ${systemCode(error)}`;
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

/** The outer error of `fetch` has no details; they are in its cause. */
function isUnreachable(error: unknown): error is Error {
  if (error instanceof oidc.ClientError)
    return error.code === "OAUTH_TIMEOUT" || error.code === "OAUTH_ABORT";
  return error instanceof TypeError && error.message === "fetch failed";
}

function systemCode({ cause }: Error): string {
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "no answer in time";
}

/** The error code of a query or a body, if it has the form of an OAuth error code. */
function codeOf(text: string): string {
  return /^[a-z_]{1,64}$/.test(text) ? text : "unknown";
}
