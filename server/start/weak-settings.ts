import type { ApiSettings } from "./api-settings.ts";

/**
 * Warnings about insecure settings that were set explicitly. The tier starts anyway, because there may be
 * reasons for them.
 */
export function weakSettings({ database }: Pick<ApiSettings, "database">): string[] {
  if (database === undefined || !/^postgres(ql)?:\/\/.*[?&]sslmode=(disable|no-verify)/u.test(database))
    return [];
  return [
    "SVC_TTS_DATABASE has no sslmode=verify-full: connections to PostgreSQL can be read, changed, or answered by another server",
  ];
}
