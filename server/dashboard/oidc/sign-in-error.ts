import * as oidc from "openid-client";
import { englishTexts, type Texts } from "../languages/english.ts";

/** A sign-in that came to nothing: a status, a sentence for the person, and what whoever runs the server is told. */
export class SignInError extends Error {
  readonly status: 400 | 403 | 502 | 503;
  readonly say: (words: Texts) => string;
  /** Short and without secrets. */
  readonly reason: string;
  /** Whose sign-in it was, as far as that is proved. */
  readonly who: string;

  constructor(
    status: SignInError["status"],
    say: (words: Texts) => string,
    reason: string,
    who = "somebody",
  ) {
    super(say(englishTexts));
    this.name = "SignInTrouble";
    this.status = status;
    this.say = say;
    this.reason = reason;
    this.who = who;
  }
}

/** Only its kind is told: what else the errors hold may quote a code, a token or a claim. */
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

/** `fetch` says so alone, with the cause inside. */
function isUnreachable(error: unknown): error is Error {
  if (error instanceof oidc.ClientError)
    return error.code === "OAUTH_TIMEOUT" || error.code === "OAUTH_ABORT";
  return error instanceof TypeError && error.message === "fetch failed";
}

function systemCode({ cause }: Error): string {
  const { code } = (cause ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "no answer in time";
}

/** What a query or a body says it is, as far as it can be one of OAuth's words. */
function codeOf(text: string): string {
  return /^[a-z_]{1,64}$/.test(text) ? text : "unknown";
}
