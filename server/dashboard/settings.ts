import type { OidcSettings } from "./oidc/settings.ts";

export interface DashboardSettings {
  /** Days after which entries of the audit log are deleted. If undefined, all entries are kept. */
  readonly auditDays?: number | undefined;
  /** URL of the server: an origin such as `https://tts.example.com`. */
  readonly url: string;
  /** File with the token of the link that creates the first owner. */
  readonly setupFile: string | undefined;
  /** Undefined if users sign in with passwords only. */
  readonly oidc?: OidcSettings | undefined;
}
