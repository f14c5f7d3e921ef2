import type { RoleGrant } from "../../store/accounts/identities.ts";

/** Settings of sign-in with an OpenID Connect provider. */
export interface OidcSettings {
  /** Issuer URL of its tokens, below which its discovery document is. */
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client, which only PKCE protects. */
  readonly clientSecretFile: string | undefined;
  /** PEM certificate of a private authority. */
  readonly caFile: string | undefined;
  /** Name of the provider for users. */
  readonly name: string;
  /** Separated by spaces; contains `openid`. */
  readonly scopes: string;
  /** The claim with a user's groups: a text, or a list of texts. */
  readonly groupsClaim: string;
  /** Roles of groups. The first group of the user applies. */
  readonly groups: readonly GroupGrant[];
}

export type GroupGrant = RoleGrant & { readonly group: string };
