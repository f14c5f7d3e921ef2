import type { RoleGrant } from "../../store/accounts/identities.ts";

/** The settings of sign-in with an OpenID Connect provider. */
export interface OidcSettings {
  /** The URL of the issuer. The path of the discovery document is relative to this URL. */
  readonly issuer: string;
  readonly clientId: string;
  /** The file with the client secret. The value is undefined for a public client, which uses only PKCE. */
  readonly clientSecretFile: string | undefined;
  /** The file with the PEM certificate of a private authority. */
  readonly caFile: string | undefined;
  /** The name of the provider on the pages. */
  readonly name: string;
  /** The scopes, separated by spaces. The list includes `openid`. */
  readonly scopes: string;
  /**
   * The name of the claim with the groups of a user. The value of the claim is a string or a list of strings.
   */
  readonly groupsClaim: string;
  /** The roles of groups. The first entry with a group of the user applies. */
  readonly groups: readonly GroupGrant[];
}

export type GroupGrant = RoleGrant & { readonly group: string };
