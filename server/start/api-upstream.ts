import type { Clock } from "../../lib/clock.ts";
import { createClusterDirectory } from "../api/upstream/kubernetes/directory.ts";
import { createLoadTracker, type LoadTracker } from "../api/upstream/load-tracker.ts";
import { createProber, type Prober } from "../api/upstream/prober.ts";
import type { ReplicaDirectory } from "../api/upstream/replicas.ts";
import { defaultHoldLimits } from "../api/upstream/request-hold.ts";
import { createFileDirectory } from "../api/upstream/routing-table.ts";
import { createVoiceDirectory, type VoiceDirectory } from "../api/upstream/voice-directory.ts";
import type { ApiSettings, ApiTiming, RoutingSource, StartEnvironment } from "./api-settings.ts";

/** The replicas of all models and their state. */
export interface Upstream {
  readonly directory: ReplicaDirectory;
  readonly prober: Prober;
  readonly voices: VoiceDirectory;
  readonly load: LoadTracker;
  close(): Promise<void>;
}

export function openDirectory(source: RoutingSource, environment: StartEnvironment): ReplicaDirectory {
  return source.kind === "file"
    ? createFileDirectory(source.path, environment.log, environment.clock)
    : createClusterDirectory({ ...source, ...environment });
}

export function openUpstream(
  settings: ApiSettings,
  { probeIntervalMs, probeTimeoutMs, voicesIntervalMs }: ApiTiming,
  directory: ReplicaDirectory,
  clock: Clock,
): Upstream {
  const { longestMs } = settings.waiting ?? defaultHoldLimits;
  const prober = createProber({
    directory,
    startingMs: longestMs,
    intervalMs: probeIntervalMs,
    timeoutMs: probeTimeoutMs,
    clock,
  });
  const voices = createVoiceDirectory({
    own: settings.voices,
    directory,
    intervalMs: voicesIntervalMs,
    timeoutMs: probeTimeoutMs,
    clock,
  });
  return {
    directory,
    prober,
    voices,
    load: createLoadTracker(directory, () => clock.monotonicMs()),
    async close() {
      directory.close();
      await Promise.all([prober.close(), voices.close()]);
    },
  };
}
