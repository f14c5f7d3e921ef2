import type { OidcSettings } from "./oidc/settings.ts";

export interface DashboardSettings {
  /**
   * The number of days after which entries of the audit log are deleted. If the value is undefined, all
   * entries are kept.
   */
  readonly auditDays?: number | undefined;
  /** The URL of the server without a path, for example `https://tts.example.com`. */
  readonly url: string;
  /** The file with the token of the link that creates the first owner. */
  readonly setupFile: string | undefined;
  /** The value is undefined if users sign in with passwords only. */
  readonly oidc?: OidcSettings | undefined;
}
