import type { TtsModelPoolSpec } from "../../crds/tts-model-pool.ts";
import { durationSeconds } from "../facts/duration.ts";
import { isoSeconds } from "../facts/time.ts";
import type { Diagnosis } from "../workload/diagnosis.ts";

/** The maintenance window, which determines when rollouts may begin. */

type MaintenanceWindow = NonNullable<TtsModelPoolSpec["rollout"]["maintenanceWindow"]>;

export interface WindowState {
  readonly open: boolean;
  /** The time at which the window closes or next opens, in milliseconds since the epoch. */
  readonly changesAt: number;
}

const dayMs = 86_400_000;
/**
 * The days to check, relative to today. A window lasts at most a day, so an open window opened yesterday or
 * today. Every weekday occurs within the next week.
 */
const daysAround = Array.from({ length: 10 }, (_, index) => index - 1);
const weekdayNames = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

/**
 * Returns the state of the window. Windows follow the clock of their time zone. If daylight saving time skips
 * the hour of the start, the window opens an hour later.
 */
export function windowState(window: MaintenanceWindow, now: number): WindowState {
  const durationMs = durationSeconds(window.duration) * 1000;
  const openings = daysAround
    .map((days) => openingOn(window, now, days))
    .filter((time) => time !== undefined)
    .sort((a, b) => a - b);
  // Windows may overlap. The window that opened last determines the end.
  const current = openings.findLast((time) => time <= now && now < time + durationMs);
  if (current !== undefined) return { open: true, changesAt: current + durationMs };
  return { open: false, changesAt: openings.find((time) => time > now) ?? now + dayMs };
}

function openingOn({ days, start, timeZone }: MaintenanceWindow, now: number, offsetDays: number) {
  const today = now + zoneOffsetMs(timeZone, now);
  const midnight = Math.floor(today / dayMs) * dayMs + offsetDays * dayMs;
  const weekday = weekdayNames[new Date(midnight).getUTCDay()];
  if (weekday === undefined || !days.includes(weekday)) return undefined;
  const [hours = 0, minutes = 0] = start.split(":").map(Number);
  return instantOf(midnight + (hours * 60 + minutes) * 60_000, timeZone);
}

/**
 * Returns the time at which clocks in the zone show `localMs`. `localMs` is the local time, encoded as if it
 * were UTC.
 */
function instantOf(localMs: number, timeZone: string): number {
  const guess = localMs - zoneOffsetMs(timeZone, localMs);
  return localMs - zoneOffsetMs(timeZone, guess);
}

/** Returns the milliseconds by which clocks in the zone are ahead of UTC. */
function zoneOffsetMs(timeZone: string, instant: number): number {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  }).formatToParts(new Date(instant));
  const of = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  const shown = Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second"));
  return shown - Math.floor(instant / 1000) * 1000;
}

/** Explains that new settings wait for the window. `field` is the field that contains the window. */
export function awaitingMaintenanceWindow(field: string, opensAt: number | undefined): Diagnosis {
  const when = opensAt === undefined ? "" : `, which opens at ${isoSeconds(opensAt)}`;
  const message = `The new settings wait for the maintenance window${when}. To roll them out immediately, remove ${field}.maintenanceWindow.`;
  return { reason: "AwaitingMaintenanceWindow", message };
}
