import { expect, it } from "vitest";
import type { ApiSettings } from "../../../server/start/api-settings.ts";
import { weakSettings } from "../../../server/start/weak-settings.ts";

const strong = { apiKey: undefined, database: undefined };
const dashboard = (url: string) => ({ ...strong, dashboard: { url, setupFile: undefined } });
const database = (place: string) => ({ ...strong, database: place });

it.each<[Pick<ApiSettings, "apiKey" | "dashboard" | "database">, string]>([
  [{ ...strong, apiKey: "dev" }, "SVC_TTS_API_KEY has fewer than 16 characters and can be guessed"],
  [dashboard("http://tts.example.com"), "SVC_TTS_DASHBOARD_URL is plain HTTP"],
  [database("postgres://me:pw@db.example/tts"), "SVC_TTS_DATABASE has no sslmode=verify-full"],
  [database("postgresql://db.example/tts?sslmode=no-verify"), "SVC_TTS_DATABASE has no sslmode=verify-full"],
])("%j is warned of, without what it holds", (settings, says) => {
  const warnings = weakSettings(settings);
  expect(warnings).toEqual([expect.stringContaining(says)]);
  expect(warnings[0]).not.toMatch(/pw|dev\b|example/);
});

it.each([
  [strong],
  [{ ...strong, apiKey: "0123456789abcdef" }],
  [dashboard("https://tts.example.com")],
  [dashboard("http://127.0.0.1:8000")],
  [database("svc-tts.db")],
  [database("postgres://db.example/tts?sslmode=verify-full&sslrootcert=/ca.pem")],
  [database("postgres://localhost/tts")],
])("%j is not warned of", (settings) => {
  expect(weakSettings(settings)).toEqual([]);
});
