import type { Accounts } from "../../store/accounts/accounts.ts";
import type { Identities } from "../../store/accounts/identities.ts";
import type { Sessions } from "../../store/accounts/sessions.ts";
import type { AuditPlace, ListedEntry } from "../../store/audit.ts";
import type { CachedLexicon } from "../../store/cached-lexicon.ts";
import type { KeyManager } from "../../store/keys/key-manager.ts";
import type { KeyTableUser } from "../../store/keys/key-table.ts";
import type { LexiconTable } from "../../store/lexicon.ts";
import type { SentenceSetting } from "../../store/team-settings.ts";
import type { DayOfUsage } from "../../store/usage.ts";
import type { UsageBy, UsageSum, UsageView, VoiceUsage } from "../../store/voice-usage.ts";
import type { Provider } from "../oidc/provider.ts";
import type { OidcSettings } from "../oidc/settings.ts";
import type { Passwords } from "../sign-in/passwords.ts";
import type { Throttle, UnknownNameLimiter } from "../sign-in/throttle.ts";

/** The services of the dashboard's pages. */
export interface DashboardContext {
  /** The URL of the server without a path, for example `https://tts.example.com`. */
  readonly url: string;
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly passwords: Passwords;
  readonly throttle: Throttle;
  readonly strangers: UnknownNameLimiter;
  /** The value is undefined if users sign in with passwords only. */
  readonly singleSignOn: SingleSignOn | undefined;
  /** Returns the token of the link that creates the first owner, or undefined if no token is configured. */
  readonly setupToken: () => Promise<string | undefined>;
  readonly keyBook: (user: KeyTableUser) => KeyManager;
  readonly lexicon: {
    readonly table: LexiconTable;
    readonly lexicon: CachedLexicon;
    readonly sentences: SentenceSetting;
  };
  /** Returns the usage since a day in UTC. */
  readonly usage: (since: string) => Promise<readonly DayOfUsage[]>;
  readonly voiceUsage: {
    sums(view: UsageView, by: UsageBy, limit: number): Promise<readonly UsageSum[]>;
    /** Returns the rows with the newest day first. */
    rows(view: UsageView, limit: number): Promise<readonly VoiceUsage[]>;
    count(view: UsageView): Promise<number>;
  };
  /**
   * Returns entries of the audit log with the newest first. The parameter `after` selects entries that are
   * older than a position.
   */
  readonly auditLog: (limit: number, after?: AuditPlace) => Promise<readonly ListedEntry[]>;
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
}

export interface SingleSignOn {
  readonly settings: OidcSettings;
  readonly provider: Provider;
  readonly identities: Identities;
  /** The URI to which the provider redirects the browser after the sign-in. */
  readonly redirectUri: string;
}
