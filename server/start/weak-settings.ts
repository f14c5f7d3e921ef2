import type { ApiSettings } from "./api-settings.ts";

/**
 * Returns warnings about insecure settings. The tier starts anyway, because an administrator set them
 * explicitly.
 */
export function weakSettings({ database }: Pick<ApiSettings, "database">): string[] {
  if (database === undefined || !/^postgres(ql)?:\/\/.*[?&]sslmode=(disable|no-verify)/u.test(database))
    return [];
  return [
    "SVC_TTS_DATABASE does not verify the server of PostgreSQL, so another server can read and change the data; set sslmode=verify-full",
  ];
}
