import { env as names } from "../../../config/contract/names.ts";
import { UsageError } from "../../../lib/usage-error.ts";
import type { GroupGrant, OidcSettings } from "../../dashboard/oidc/settings.ts";
import { isTeamName, roles } from "../../store/accounts/accounts.ts";
import { type Environment, readers } from "./environment.ts";

/**
 * Reads the settings of single sign-on. The result is undefined without an issuer.
 * @throws UsageError with the variable, its value and the allowed values.
 */
export function readOidc(environment: Environment): OidcSettings | undefined {
  const { text } = readers(environment);
  const issuer = text(names.oidcIssuer);
  if (issuer === undefined) return undefined;
  requireIssuer(issuer);
  const clientId = text(names.oidcClientId);
  if (clientId === undefined) {
    throw new UsageError(
      `${names.oidcIssuer} needs ${names.oidcClientId}; set it to the client ID of this server at the provider.`,
    );
  }
  const scopes = text(names.oidcScopes) ?? "openid profile email";
  if (!scopes.split(" ").includes("openid")) {
    throw new UsageError(
      `${names.oidcScopes} must contain the scope openid; it is ${JSON.stringify(scopes)}.`,
    );
  }
  return {
    issuer,
    clientId,
    clientSecretFile: text(names.oidcClientSecretFile),
    caFile: text(names.oidcCaFile),
    name: text(names.oidcName) ?? new URL(issuer).hostname,
    scopes,
    groupsClaim: text(names.oidcGroupsClaim) ?? "groups",
    groups: readGroups(text(names.oidcGroups)),
  };
}

/** Requires https. Plain HTTP is allowed only for addresses of this machine. */
function requireIssuer(issuer: string): void {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  const isLocal = url?.protocol === "http:" && /^(127\.0\.0\.1|\[::1\]|localhost)$/.test(url.hostname);
  if (
    url &&
    (url.protocol === "https:" || isLocal) &&
    url.search === "" &&
    url.hash === "" &&
    url.username === ""
  )
    return;
  throw new UsageError(
    `${names.oidcIssuer} must be an https URL, such as https://login.example.com/realms/staff; it is ${JSON.stringify(issuer)}.`,
  );
}

function readGroups(text: string | undefined): readonly GroupGrant[] {
  if (text === undefined) return [];
  const grants = toGroups(text);
  if (grants) return grants;
  throw new UsageError(
    `${names.oidcGroups} must be a JSON list of groups and their roles, such as [{"group": "speech", "role": "member", "team": "blue"}]; the role must be one of ${roles.join(", ")}, and every role except owner needs a team. The value is ${JSON.stringify(text)}.`,
  );
}

function toGroups(text: string): GroupGrant[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return undefined;
    const grants = list.map(toGrant).filter((grant) => grant !== undefined);
    return grants.length === list.length ? grants : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function toGrant(entry: unknown): GroupGrant | undefined {
  if (typeof entry !== "object" || entry === null) return undefined;
  const { group, role: given, team, ...unknown } = entry as Readonly<Record<string, unknown>>;
  const role = roles.find((one) => one === given);
  const isTeam = typeof team === "string" && isTeamName(team);
  const fits = isTeam || (team === undefined && role === "owner");
  if (typeof group !== "string" || group === "" || !role || !fits || Object.keys(unknown).length > 0)
    return undefined;
  return { group, role, ...(isTeam && { team }) };
}
