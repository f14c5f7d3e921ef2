import type { ApiSettings } from "./api-settings.ts";

type Judged = Pick<ApiSettings, "apiKey" | "dashboard" | "database">;

/** 95 random bits in base62 need 16 characters; our own keys have 42. */
const shortestKey = 16;

/** Warnings about insecure settings. The tier starts nevertheless, because there may be reasons for them. */
export function weakSettings({ apiKey, dashboard, database }: Judged): string[] {
  const warnings: string[] = [];
  if (apiKey !== undefined && apiKey.length < shortestKey) {
    warnings.push(
      `SVC_TTS_API_KEY has fewer than ${shortestKey} characters and can be guessed; make keys by svc-tts keys create`,
    );
  }
  if (dashboard?.url.startsWith("http:") && !isHere(new URL(dashboard.url).hostname)) {
    warnings.push(
      "SVC_TTS_DASHBOARD_URL is plain HTTP: passwords and sessions can be read on the way; put TLS in front of it and give its https URL",
    );
  }
  if (database !== undefined && isReadable(database)) {
    warnings.push(
      "SVC_TTS_DATABASE has no sslmode=verify-full: connections to PostgreSQL can be read, changed, or answered by another server",
    );
  }
  return warnings;
}

function isHere(hostname: string): boolean {
  return /^(127(\.\d+){3}|\[::1\]|localhost)$/.test(hostname);
}

function isReadable(database: string): boolean {
  const url = /^postgres(ql)?:\/\//.test(database) && URL.canParse(database) ? new URL(database) : undefined;
  if (url === undefined || url.hostname === "" || isHere(url.hostname)) return false; // a file, or a socket of this machine
  return url.searchParams.get("sslmode") !== "verify-full";
}
