import { describe, expect, it } from "vitest";
import { windowState } from "../../../../operator/rollout/window.ts";

const everyDay = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] as const;
const night = { days: [...everyDay], start: "23:00", duration: "2h", timeZone: "UTC" };

function at(window: Partial<typeof night>, time: string) {
  const { open, changesAt } = windowState({ ...night, ...window }, Date.parse(time));
  return `${open ? "open until" : "closed until"} ${new Date(changesAt).toISOString().replace(":00.000Z", "Z")}`;
}

describe("a maintenance window", () => {
  it.each([
    ["is closed before its start", {}, "2026-01-01T22:59:59Z", "closed until 2026-01-01T23:00Z"],
    ["is open at its start", {}, "2026-01-01T23:00:00Z", "open until 2026-01-02T01:00Z"],
    ["is open after midnight", {}, "2026-01-02T00:59:59Z", "open until 2026-01-02T01:00Z"],
    ["is closed at its end", {}, "2026-01-02T01:00:00Z", "closed until 2026-01-02T23:00Z"],
    // 2026-01-01 is a Thursday.
    [
      "opens on the evening of its only day",
      { days: ["Thu"] },
      "2026-01-01T12:00:00Z",
      "closed until 2026-01-01T23:00Z",
    ],
    [
      "is open on the morning after its only day",
      { days: ["Thu"] },
      "2026-01-02T00:30:00Z",
      "open until 2026-01-02T01:00Z",
    ],
    ["opens again after a week", { days: ["Thu"] }, "2026-01-02T01:00:00Z", "closed until 2026-01-08T23:00Z"],
    [
      "opens on the next of two days",
      { days: ["Sat", "Mon"] },
      "2026-01-04T12:00:00Z",
      "closed until 2026-01-05T23:00Z",
    ],
    ["may last 24 hours", { duration: "24h" }, "2026-01-02T22:59:00Z", "open until 2026-01-02T23:00Z"],
  ] as const)("%s", (_what, window, time, expected) => {
    expect(at(window as Partial<typeof night>, time)).toBe(expected);
  });

  it.each([
    ["in winter", "2026-01-10T12:00:00Z", "closed until 2026-01-11T01:30Z"],
    ["in summer", "2026-07-10T12:00:00Z", "closed until 2026-07-11T00:30Z"],
    // On 2026-03-29 Berlin skips the time from 02:00 to 03:00. On 2026-10-25 it repeats that hour.
    ["on the night without 02:30", "2026-03-28T12:00:00Z", "closed until 2026-03-29T01:30Z"],
    ["on the night with 02:30 twice", "2026-10-24T12:00:00Z", "closed until 2026-10-25T01:30Z"],
  ])("follows the local time of its time zone %s", (_what, time, expected) => {
    expect(at({ start: "02:30", timeZone: "Europe/Berlin" }, time)).toBe(expected);
  });

  it("uses the date in its time zone instead of UTC", () => {
    // Friday 20:00 in UTC is Saturday in Tokyo.
    const tokyo = { days: ["Sat"], start: "04:00", duration: "2h", timeZone: "Asia/Tokyo" };
    expect(at(tokyo as unknown as typeof night, "2026-01-02T20:00:00Z")).toBe("open until 2026-01-02T21:00Z");
  });
});
