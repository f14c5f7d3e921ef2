import type { RoleGrant } from "../../store/accounts/identities.ts";

/** Settings of sign-in with an OpenID Connect provider. */
export interface OidcSettings {
  /** URL of the issuer. The path of the discovery document is relative to this URL. */
  readonly issuer: string;
  readonly clientId: string;
  /** File with the client secret. Undefined for a public client, which uses only PKCE. */
  readonly clientSecretFile: string | undefined;
  /** File with the PEM certificate of a private authority. */
  readonly caFile: string | undefined;
  /** Name of the provider on the pages. */
  readonly name: string;
  /** Scopes, separated by spaces. They include `openid`. */
  readonly scopes: string;
  /** Name of the claim with the groups of a user. The value of the claim is a string or a list of strings. */
  readonly groupsClaim: string;
  /** Roles of groups. The first entry with a group of the user applies. */
  readonly groups: readonly GroupGrant[];
}

export type GroupGrant = RoleGrant & { readonly group: string };
