import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export interface TestAccount {
  /** The permanent subject identifier of the user. */
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * A real OpenID Connect provider on a port of this machine. It signs in the current account without a
 * password.
 */
export interface TestProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The account that the provider signs in. */
  account: TestAccount;
  /** Whether the provider issues codes that have already expired. */
  codesAreOld: boolean;
  /**
   * Follows the redirects of the provider like a browser.
   *
   * @param url the URL of the authorization request
   * @returns the first URL that does not belong to the provider
   */
  visit(url: URL): Promise<URL>;
  close(): Promise<void>;
}

const clientId = "svc-tts";
const clientSecret = "a-secret-that-the-provider-made";

/** @param redirectUris the allowed redirect URIs */
export async function startTestProvider(redirectUris: readonly string[]): Promise<TestProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const accounts = new Map<string, TestAccount>();
  const testProvider: TestProvider = {
    issuer,
    clientId,
    clientSecret,
    account: { subject: "unknown", claims: {} },
    codesAreOld: false,
    visit: (url) => followWithin(issuer, url),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [...redirectUris] }],
    claims: {
      openid: ["sub"],
      profile: ["preferred_username", "groups"],
      email: ["email", "email_verified"],
    },
    cookies: { keys: ["of-tests"] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    ttl: {
      ...{ Interaction: 60, Grant: 60, Session: 60, AccessToken: 60, IdToken: 60 },
      AuthorizationCode: (_ctx, code) => {
        if (testProvider.codesAreOld) code.exp = 1;
        return 60;
      },
    },
    findAccount: (_ctx, subject) => ({
      accountId: subject,
      claims: async () => ({ sub: subject, ...accounts.get(subject)?.claims }),
    }),
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId,
        ...(oidc.session?.accountId !== undefined && { accountId: oidc.session.accountId }),
      });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  });
  const callback = provider.callback();
  server.on("request", (request, response) => {
    if (!request.url?.startsWith("/interaction/")) return void callback(request, response);
    const { subject } = testProvider.account;
    accounts.set(subject, testProvider.account);
    void provider.interactionFinished(request, response, { login: { accountId: subject } });
  });
  return testProvider;
}

/** Follows redirects, with the cookies of the provider, until a redirect leads to another host. */
async function followWithin(issuer: string, start: URL): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = start;
  while (url.origin === new URL(issuer).origin) {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location === null)
      throw new Error(`${url.pathname} returned status ${response.status}: ${await response.text()}`);
    url = new URL(location, url);
  }
  return url;
}
