import type { OidcSettings } from "./oidc/settings.ts";

export interface DashboardSettings {
  /** Days after which audit entries are deleted. They are kept without limit by default. */
  readonly auditDays?: number | undefined;
  /** URL of the server: an origin such as `https://tts.example.com`. */
  readonly url: string;
  /** File with the token in the first owner's link. */
  readonly setupFile: string | undefined;
  /** Undefined if users sign in with passwords only. */
  readonly oidc?: OidcSettings | undefined;
}
