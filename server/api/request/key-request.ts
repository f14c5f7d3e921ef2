import Type from "typebox";
import { type KeyFacts, type KeyLimits, type Scope, scopes } from "../../store/keys/key.ts";
import type { KeyRotation } from "../../store/keys/key-manager.ts";
import { FieldReader, formatValue } from "./field-reader.ts";

/** The fields of a request for a new key. The same schemas validate requests and describe the API. */
export const keyFields = {
  name: Type.String({ minLength: 1, maxLength: 64, description: "The user or program that uses the key." }),
  scopes: Type.Array(Type.Enum([...scopes]), {
    minItems: 1,
    maxItems: scopes.length,
    description: "What the key allows. Default: `tts:write`.",
  }),
  team: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "Team whose words and lexicon the key uses.",
  }),
  expiresAt: Type.String({ maxLength: 64, description: "Expiry (RFC 3339). Default: never." }),
  requestsPerMinute: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  streams: Type.Integer({ minimum: 1, maximum: 1_000_000, description: "Concurrent streams." }),
} as const;

export const rotationFields = {
  overlapHours: Type.Integer({
    minimum: 0,
    maximum: 8784,
    description: "Hours for which the previous secrets stay valid. Default: 24.",
  }),
  expiresAt: Type.String({
    maxLength: 64,
    description: "Expiry of the new secret (RFC 3339). Default: the expiry of the key.",
  }),
} as const;

const usualOverlapHours = 24;
const hourMs = 3_600_000;
/** Matches a name of one line that is safe in a URL, a table and a log. */
const plainName = /^[\p{L}\p{N}][\p{L}\p{N} ._@:+-]{0,63}$/u;

/**
 * Validates a request for a new API key.
 * @param now milliseconds since the epoch.
 * @param team the team of the client, which may create keys only for this team, without the scope `admin` and
 * within the server's limits. The value is undefined if the client may create keys for any team.
 * @param serverLimits the default limits of API keys.
 * @throws Failure `invalid_request` with all invalid fields.
 */
export function readKeyFacts(
  body: unknown,
  now: number,
  team: string | undefined,
  serverLimits: KeyLimits,
): KeyFacts {
  const reader = new FieldReader(body, []);
  const name = readName(reader, "name", reader.readRequired<string>("name", keyFields.name)) ?? "";
  const requestedScopes = reader.read<readonly Scope[]>("scopes", keyFields.scopes) ?? ["tts:write"];
  const requestedTeam = readName(reader, "team", reader.read<string>("team", keyFields.team));
  if (team !== undefined && requestedTeam !== undefined && requestedTeam !== team) {
    reader.refuse("team", `must be ${team} or absent; the value is ${formatValue(requestedTeam)}`);
  }
  if (team !== undefined && requestedScopes.includes("admin")) {
    reader.refuse("scopes", "may contain admin only if an owner, or a key without a team, creates the key");
  }
  const expiresAt = readExpiry(reader, now);
  const readLimit = (name: keyof KeyLimits): number | undefined => {
    const value = reader.read<number>(name, keyFields[name]);
    const most = team === undefined ? undefined : serverLimits[name];
    if (value === undefined || most === undefined || value <= most) return value;
    reader.refuse(
      name,
      `must be at most ${most}, the server's limit; an owner, or a key without a team, may set a higher value`,
    );
    return undefined;
  };
  const requestsPerMinute = readLimit("requestsPerMinute");
  const streams = readLimit("streams");
  reader.finish();
  const keyTeam = team ?? requestedTeam;
  return {
    name,
    scopes: scopes.filter((scope) => requestedScopes.includes(scope)),
    ...(keyTeam !== undefined && { team: keyTeam }),
    ...(expiresAt !== undefined && { expiresAt }),
    limits: {
      ...(requestsPerMinute !== undefined && { requestsPerMinute }),
      ...(streams !== undefined && { streams }),
    },
  };
}

/** Validates a request to rotate an API key. @throws Failure `invalid_request`. */
export function readRotation(body: unknown, now: number): KeyRotation {
  const reader = new FieldReader(body, []);
  const hours = reader.read<number>("overlapHours", rotationFields.overlapHours) ?? usualOverlapHours;
  const expiresAt = readExpiry(reader, now);
  reader.finish();
  return { endOfOthers: now + hours * hourMs, ...(expiresAt !== undefined && { expiresAt }) };
}

/** Checks the name of a key or of a team. */
function readName(reader: FieldReader, field: string, value: string | undefined): string | undefined {
  if (value === undefined || plainName.test(value)) return value;
  reader.refuse(
    field,
    `must be 1 to 64 letters, digits, spaces and ._@:+-, and start with a letter or digit; the value is ${formatValue(value)}`,
  );
  return undefined;
}

function readExpiry(reader: FieldReader, now: number): number | undefined {
  const given = reader.read<string>("expiresAt", keyFields.expiresAt);
  if (given === undefined) return undefined;
  const time = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(given) ? Date.parse(given) : Number.NaN;
  if (time > now) return time;
  reader.refuse(
    "expiresAt",
    `must be a future time, such as 2027-01-31T00:00:00Z; the value is ${formatValue(given)}`,
  );
  return undefined;
}
