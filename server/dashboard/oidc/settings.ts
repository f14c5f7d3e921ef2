import type { RoleGrant } from "../../store/accounts/identities.ts";

/** Sign-in by an OpenID Connect provider. */
export interface OidcSettings {
  /** URL that its tokens name, where its discovery document is. */
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined: a public client, which PKCE alone protects. */
  readonly clientSecretFile: string | undefined;
  /** PEM of a private authority. */
  readonly caFile: string | undefined;
  /** As people know the provider. */
  readonly name: string;
  /** With spaces between; `openid` is one. */
  readonly scopes: string;
  /** The claim that names a person's groups: a text, or several. */
  readonly groupsClaim: string;
  /** What groups give; the first that a person is in counts. */
  readonly groups: readonly GroupGrant[];
}

export type GroupGrant = RoleGrant & { readonly group: string };
