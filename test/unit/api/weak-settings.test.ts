import { expect, it } from "vitest";
import { weakSettings } from "../../../server/start/weak-settings.ts";

it.each(["postgres://me:pw@db.example/tts?sslmode=disable", "postgresql://db.example/tts?sslmode=no-verify"])(
  "weakSettings warns about %s without repeating its password or host",
  (database) => {
    const warnings = weakSettings({ database });
    expect(warnings).toEqual([
      expect.stringContaining("SVC_TTS_DATABASE does not verify the server of PostgreSQL"),
    ]);
    expect(warnings[0]).not.toMatch(/pw|example/);
  },
);

it.each([
  undefined,
  "svc-tts.db",
  "postgres://db.example/tts?sslmode=verify-full&sslrootcert=/ca.pem",
  "postgres://localhost/tts",
])("weakSettings does not warn about %s", (database) => {
  expect(weakSettings({ database })).toEqual([]);
});
