import { readFile } from "node:fs/promises";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { createAccounts } from "../store/accounts/accounts.ts";
import { createIdentities } from "../store/accounts/identities.ts";
import { createSessions } from "../store/accounts/sessions.ts";
import { listAudit } from "../store/audit.ts";
import type { Database } from "../store/database/database.ts";
import { openKeyTableBook } from "../store/keys/key-table.ts";
import { listUsage } from "../store/usage.ts";
import { countVoiceUsage, listVoiceUsage, sumVoiceUsage } from "../store/voice-usage.ts";
import { createProvider } from "./oidc/provider.ts";
import type { OidcSettings } from "./oidc/settings.ts";
import type { DashboardContext, SingleSignOn } from "./pages/dashboard-context.ts";
import { base } from "./pages/layout.ts";
import { callbackPath } from "./pages/sign-in.ts";
import type { DashboardSettings } from "./settings.ts";
import { createPasswords } from "./sign-in/passwords.ts";
import { createThrottle, createUnknownNameLimiter } from "./sign-in/throttle.ts";

/**
 * Creates the services of the dashboard's pages. @param now returns the time in milliseconds since the epoch.
 */
export function openDashboard(
  { url, setupFile, oidc }: DashboardSettings,
  database: Database,
  lexicon: DashboardContext["lexicon"],
  now: () => number,
): DashboardContext {
  return {
    url,
    accounts: createAccounts(database, now),
    sessions: createSessions(database, now),
    passwords: createPasswords(),
    throttle: createThrottle(),
    strangers: createUnknownNameLimiter(),
    singleSignOn: oidc && openSingleSignOn(oidc, `${url}${base}${callbackPath}`, database, now),
    setupToken: async () =>
      setupFile === undefined ? undefined : (await readIfExists(readFile(setupFile, "utf8")))?.trim(),
    keyBook: (user) => openKeyTableBook(database, now, user),
    lexicon,
    usage: (since) => listUsage(database, since),
    voiceUsage: {
      sums: (view, by, limit) => sumVoiceUsage(database, view, by, limit),
      rows: (view, limit) => listVoiceUsage(database, view, limit),
      count: (view) => countVoiceUsage(database, view),
    },
    auditLog: (limit, after) => listAudit(database, limit, after),
    now,
  };
}

function openSingleSignOn(
  settings: OidcSettings,
  redirectUri: string,
  database: Database,
  now: () => number,
): SingleSignOn {
  const provider = createProvider(settings, redirectUri, now);
  return { settings, redirectUri, provider, identities: createIdentities(database, now) };
}
