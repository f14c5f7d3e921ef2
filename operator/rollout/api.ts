import { apiSettings } from "../desired/pods/deployment.ts";
import { readPinnedTemplate } from "../desired/pods/pinned-template.ts";
import type { Deployment, TtsDeployment } from "../facts/observed.ts";
import type { Diagnosis } from "../workload/diagnosis.ts";
import { awaitingMaintenanceWindow, windowState } from "./window.ts";

/** Decides whether new settings of the API tier may roll out now. */
export interface ApiRolloutPlan {
  /** Whether the API pods may get a new template. */
  readonly mayStart: boolean;
  /** The reason why the API pods keep their settings, if any. */
  readonly waits: Diagnosis | undefined;
  /** The time at which the maintenance window opens, in milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/** Plans the rollout of the API tier. The first start does not wait for the maintenance window. */
export function planApiRollout(
  owner: TtsDeployment,
  live: Deployment | undefined,
  now: number,
): ApiRolloutPlan {
  const immediate = { mayStart: true, waits: undefined, changesAt: undefined };
  const window = owner.spec.api.rollout?.maintenanceWindow;
  const pinned = readPinnedTemplate(live);
  if (window === undefined || pinned === undefined || pinned.specHash === apiSettings(owner))
    return immediate;
  const { open, changesAt } = windowState(window, now);
  if (open) return immediate;
  return { mayStart: false, waits: awaitingMaintenanceWindow("api.rollout", changesAt), changesAt };
}
