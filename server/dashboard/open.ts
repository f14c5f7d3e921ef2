import { readFile } from "node:fs/promises";
import type { DashboardSettings } from "../api/settings.ts";
import { ifThere } from "../if-there.ts";
import { createAccounts } from "../store/accounts.ts";
import { listAudit } from "../store/audit.ts";
import type { Database } from "../store/database.ts";
import { openKeyTableBook } from "../store/key-table.ts";
import { createSessions } from "../store/sessions.ts";
import { listUsage } from "../store/usage.ts";
import type { DashboardParts } from "./parts.ts";
import { createPasswords } from "./passwords.ts";
import { createThrottle } from "./throttle.ts";

/** @param now milliseconds since the epoch. */
export function openDashboard(
  { url, setupFile }: DashboardSettings,
  database: Database,
  lexicon: DashboardParts["lexicon"],
  now: () => number,
): DashboardParts {
  return {
    url,
    accounts: createAccounts(database, now),
    sessions: createSessions(database, now),
    passwords: createPasswords(),
    throttle: createThrottle(),
    setupToken: async () =>
      setupFile === undefined ? undefined : (await ifThere(readFile(setupFile, "utf8")))?.trim(),
    keyBook: (user) => openKeyTableBook(database, now, user),
    lexicon,
    usage: (since) => listUsage(database, since),
    changes: (limit) => listAudit(database, limit),
    now,
  };
}
