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
 * A real OpenID Connect provider on a port of this machine. It signs the current account in without a
 * password.
 */
export interface TestProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The account of the user at the browser. */
  somebody: TestAccount;
  /** Issues codes that have already expired. */
  codesAreOld: boolean;
  /**
   * Follows the provider's redirects like a browser.
   * @param url of the authorization request.
   * @returns the URL to which it redirects the browser.
   */
  visit(url: URL): Promise<URL>;
  close(): Promise<void>;
}

const clientId = "svc-tts";
const clientSecret = "a-secret-that-the-provider-made";

/** @param redirectUris the allowed redirect URIs. */
export async function startTestProvider(redirectUris: readonly string[]): Promise<TestProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const accounts = new Map<string, TestAccount>();
  const made: TestProvider = {
    issuer,
    clientId,
    clientSecret,
    somebody: { subject: "unknown", claims: {} },
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
        if (made.codesAreOld) code.exp = 1;
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
    const { subject } = made.somebody;
    accounts.set(subject, made.somebody);
    void provider.interactionFinished(request, response, { login: { accountId: subject } });
  });
  return made;
}

/** Follows redirects with the provider's cookies until they lead to another host. */
async function followWithin(issuer: string, start: URL): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = start;
  while (url.origin === new URL(issuer).origin) {
    const answer = await fetch(url, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    const location = answer.headers.get("location");
    if (location === null)
      throw new Error(`${url.pathname} answers ${answer.status}: ${await answer.text()}`);
    url = new URL(location, url);
  }
  return url;
}
