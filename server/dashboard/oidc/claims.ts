import type { ProvedIdentity, RoleGrant } from "../../store/accounts/identities.ts";
import { findPersonName } from "../sign-in/credentials.ts";
import type { GroupGrant, OidcSettings } from "./settings.ts";

/** The claims of a provider about a user (OpenID Connect Core 1.0, section 5.1). */
export type Claims = Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string };

/**
 * Reads the identity of a user from the claims. An e-mail address that the provider has not verified is
 * ignored, because the address may belong to another person.
 */
export function readClaims(
  claims: Claims,
  { groups, groupsClaim }: Pick<OidcSettings, "groups" | "groupsClaim">,
): ProvedIdentity {
  const { iss: issuer, sub: subject, email, email_verified, preferred_username } = claims;
  const verifiedEmail = email_verified === true ? nameIn(email) : undefined;
  return {
    issuer,
    subject,
    name: verifiedEmail ?? nameIn(preferred_username) ?? nameIn(subject),
    verifiedEmail,
    grant: grantOf(groups, namesOf(claims[groupsClaim])),
  };
}

function nameIn(value: unknown): string | undefined {
  return typeof value === "string" ? findPersonName(value) : undefined;
}

function namesOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function grantOf(grants: readonly GroupGrant[], names: readonly unknown[]): RoleGrant | undefined {
  const grant = grants.find(({ group }) => names.includes(group));
  if (!grant) return undefined;
  const { role, team } = grant;
  return { role, ...(team !== undefined && { team }) };
}
