import type { OidcSettings } from "./oidc/settings.ts";

export interface DashboardSettings {
  /** Days after which changes are forgotten; they are kept for ever unless given. */
  readonly auditDays?: number | undefined;
  /** Where people reach the server: an origin, as `https://tts.example.com`. */
  readonly url: string;
  /** Holds what the link of the first owner shows. */
  readonly setupFile: string | undefined;
  /** Undefined: people sign in by passwords alone. */
  readonly oidc?: OidcSettings | undefined;
}
