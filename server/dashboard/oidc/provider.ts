import { readFile } from "node:fs/promises";
import * as oidc from "openid-client";
import { Agent, fetch as fetchBy } from "undici";
import { readIfExists } from "../../../lib/read-if-exists.ts";
import type { Texts } from "../languages/english.ts";
import type { Claims } from "./claims.ts";
import type { Flow } from "./flow.ts";
import type { OidcSettings } from "./settings.ts";
import { SignInError, signInErrorOf } from "./sign-in-error.ts";

/** The OpenID Connect provider, used by the authorization code flow with PKCE. */
export interface Provider {
  /** URL of the provider's sign-in page. @throws SignInTrouble */
  begin(flow: Flow): Promise<URL>;
  /** @param callback URL to which the browser returned. @throws SignInTrouble */
  finish(callback: URL, flow: Flow): Promise<Claims>;
}

/** How long its discovery document is cached, and the longest wait for each response. */
const freshMs = 3_600_000;
const withinSeconds = 10;

interface Discovered {
  readonly secret: string | undefined;
  readonly at: number;
  readonly config: Promise<oidc.Configuration>;
}

/**
 * The provider is first contacted at the first sign-in, so that an unreachable provider does not prevent a
 * start. @param now milliseconds.
 */
export function createProvider(settings: OidcSettings, redirectUri: string, now: () => number): Provider {
  let known: Discovered | undefined;
  const configuration = async (): Promise<oidc.Configuration> => {
    const secret = await readSecret(settings);
    if (known && known.secret === secret && now() - known.at < freshMs) return known.config;
    const mine: Discovered = { secret, at: now(), config: discover(settings, secret) };
    known = mine;
    mine.config.catch(() => {
      if (known === mine) known = undefined;
    });
    return mine.config;
  };
  const telling = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      throw signInErrorOf(error, settings.name);
    }
  };
  return {
    begin: ({ state, nonce, verifier }) =>
      telling(async () =>
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
      telling(async () => {
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

/** A provider with many tenants lets each one name itself. Only the configured tenant is accepted. */
function requireIssuer(claims: oidc.IDToken | undefined, { issuer, name }: OidcSettings): oidc.IDToken {
  if (claims && new URL(claims.iss).href === new URL(issuer).href) return claims;
  throw new SignInError(400, (words) => words.provider.otherIssuer(name), "another issuer");
}

/** Read each time, so that it can be replaced. */
async function readSecret(settings: OidcSettings): Promise<string | undefined> {
  const { clientSecretFile } = settings;
  return clientSecretFile === undefined ? undefined : readSetting(clientSecretFile, clientSecret, settings);
}

interface Setting {
  readonly what: string;
  readonly say: (words: Texts, provider: string) => string;
}

const clientSecret: Setting = {
  what: "the client's secret",
  say: ({ provider }, name) => provider.lacksSecret(name),
};
const authority: Setting = {
  what: "its authority's certificate",
  say: ({ provider }, name) => provider.lacksAuthority(name),
};

async function readSetting(path: string, { what, say }: Setting, { name }: OidcSettings): Promise<string> {
  const text = (await readIfExists(readFile(path, "utf8")))?.trimEnd();
  if (text) return text;
  throw new SignInError(503, (words) => say(words, name), `${what} is not there`);
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
 * The client authenticates by `Authorization` unless the provider supports only the body (OpenID Connect
 * Discovery 1.0, section 3: the former is the default).
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
  // undici's types and Node's describe the same standard, but are not identical.
  const send = fetchBy as unknown as (url: string, init: object) => Promise<Response>;
  return (url, options) => send(url, { ...options, dispatcher });
}
