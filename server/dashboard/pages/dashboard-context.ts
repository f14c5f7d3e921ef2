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

/** All that the dashboard needs, made elsewhere. */
export interface DashboardContext {
  /** Where people reach the server, without a path: `https://tts.example.com`. */
  readonly url: string;
  readonly accounts: Accounts;
  readonly sessions: Sessions;
  readonly passwords: Passwords;
  readonly throttle: Throttle;
  readonly strangers: UnknownNameLimiter;
  /** Undefined: people sign in by passwords alone. */
  readonly singleSignOn: SingleSignOn | undefined;
  /** What the first owner's link shows; undefined where there is none, or no longer. */
  readonly setupToken: () => Promise<string | undefined>;
  readonly keyBook: (user: KeyTableUser) => KeyManager;
  readonly lexicon: {
    readonly table: LexiconTable;
    readonly lexicon: CachedLexicon;
    readonly sentences: SentenceSetting;
  };
  /** Since a day of UTC. */
  readonly usage: (since: string) => Promise<readonly DayOfUsage[]>;
  readonly voiceUsage: {
    sums(view: UsageView, by: UsageBy, limit: number): Promise<readonly UsageSum[]>;
    /** The newest first. */
    rows(view: UsageView, limit: number): Promise<readonly VoiceUsage[]>;
    count(view: UsageView): Promise<number>;
  };
  /** The newest changes, or those older than a place in the record. */
  readonly changes: (limit: number, after?: AuditPlace) => Promise<readonly ListedEntry[]>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface SingleSignOn {
  readonly settings: OidcSettings;
  readonly provider: Provider;
  readonly identities: Identities;
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string;
}
