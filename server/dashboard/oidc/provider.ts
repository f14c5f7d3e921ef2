import { readFile } from "node:fs/promises";
import * as oidc from "openid-client";
import { Agent, fetch as fetchBy } from "undici";
import { readIfExists } from "../../../lib/read-if-exists.ts";
import type { Texts } from "../languages/english.ts";
import type { Claims } from "./claims.ts";
import type { Flow } from "./flow.ts";
import type { OidcSettings } from "./settings.ts";
import { SignInError, signInErrorOf } from "./sign-in-error.ts";

/** A client of the OpenID Connect provider, which uses the authorization code flow with PKCE. */
export interface Provider {
  /** Returns the URL of the provider's sign-in page. @throws SignInError */
  begin(flow: Flow): Promise<URL>;
  /** Returns the claims of the user. @param callback the URL to which the browser returned. @throws SignInError */
  finish(callback: URL, flow: Flow): Promise<Claims>;
}

/** The time for which the discovery document is cached. */
const freshMs = 3_600_000;
/** The longest wait for a response of the provider. */
const withinSeconds = 10;

interface Discovered {
  readonly secret: string | undefined;
  readonly at: number;
  readonly config: Promise<oidc.Configuration>;
}

/**
 * Creates a client. The first request is sent at the first sign-in, so that the server also starts while the
 * provider is unreachable.
 * @param now returns the time in milliseconds.
 */
export function createProvider(settings: OidcSettings, redirectUri: string, now: () => number): Provider {
  let known: Discovered | undefined;
  const configuration = async (): Promise<oidc.Configuration> => {
    const secret = await readSecret(settings);
    if (known && known.secret === secret && now() - known.at < freshMs) return known.config;
    const attempt: Discovered = { secret, at: now(), config: discover(settings, secret) };
    known = attempt;
    attempt.config.catch(() => {
      if (known === attempt) known = undefined;
    });
    return attempt.config;
  };
  const withSignInErrors = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      throw signInErrorOf(error, settings.name);
    }
  };
  return {
    begin: ({ state, nonce, verifier }) =>
      withSignInErrors(async () =>
        oidc.buildAuthorizationUrl(await configuration(), {
          redirect_uri: redirectUri,
          scope: settings.scopes,
          state,
          nonce,
          code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
        }),
      ),
    finish: (callback, { state, nonce, verifier }) =>
      withSignInErrors(async () => {
        const config = await configuration();
        const tokens = await oidc.authorizationCodeGrant(config, callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = requireIssuer(tokens.claims(), settings);
        if (config.serverMetadata().userinfo_endpoint === undefined) return claims;
        const more = await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
        return { ...more, ...claims };
      }),
  };
}

/** Requires the configured issuer. A provider with many tenants has a different issuer for each tenant. */
function requireIssuer(claims: oidc.IDToken | undefined, { issuer, name }: OidcSettings): oidc.IDToken {
  if (claims && new URL(claims.iss).href === new URL(issuer).href) return claims;
  throw new SignInError(400, (words) => words.provider.otherIssuer(name), "the token is from another issuer");
}

/** Reads the client secret. Each sign-in reads the file again, because the file may change. */
async function readSecret(settings: OidcSettings): Promise<string | undefined> {
  const { clientSecretFile } = settings;
  return clientSecretFile === undefined ? undefined : readSetting(clientSecretFile, clientSecret, settings);
}

interface Setting {
  readonly what: string;
  readonly say: (words: Texts, provider: string) => string;
}

const clientSecret: Setting = {
  what: "the file with the client secret",
  say: ({ provider }, name) => provider.lacksSecret(name),
};
const authority: Setting = {
  what: "the file with the certificate of the provider's authority",
  say: ({ provider }, name) => provider.lacksAuthority(name),
};

async function readSetting(path: string, { what, say }: Setting, { name }: OidcSettings): Promise<string> {
  const text = (await readIfExists(readFile(path, "utf8")))?.trimEnd();
  if (text) return text;
  throw new SignInError(503, (words) => say(words, name), `${what}, ${path}, is missing or empty`);
}

async function discover(settings: OidcSettings, secret: string | undefined): Promise<oidc.Configuration> {
  const { issuer, clientId, caFile } = settings;
  const url = new URL(issuer);
  const execute = [
    oidc.enableNonRepudiationChecks,
    ...(url.protocol === "http:" ? [oidc.allowInsecureRequests] : []),
  ];
  return oidc.discovery(url, clientId, undefined, clientAuth(secret), {
    execute,
    timeout: withinSeconds,
    ...(caFile !== undefined && {
      [oidc.customFetch]: trusting(await readSetting(caFile, authority, settings)),
    }),
  });
}

/**
 * Selects how the client authenticates: with the header `Authorization`, which is the default of OpenID Connect
 * Discovery 1.0 (section 3), or in the body if the provider does not support the header.
 */
function clientAuth(secret: string | undefined): oidc.ClientAuth {
  if (secret === undefined) return oidc.None();
  const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const offered = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    (offered.includes("client_secret_basic") ? basic : post)(server, ...rest);
  };
}

function trusting(authority: string): oidc.CustomFetch {
  const dispatcher = new Agent({ connect: { ca: authority } });
  // The types of undici and Node describe the same standard, but are not identical.
  const send = fetchBy as unknown as (url: string, init: object) => Promise<Response>;
  return (url, options) => send(url, { ...options, dispatcher });
}
