import { Counter, Gauge, Histogram } from "prom-client";
import { licenseStates } from "../../../config/contract/license.ts";
import type { PoolLoad } from "../../../config/contract/load.ts";
import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import { poolMetrics, poolOutcomes } from "../../../config/contract/pool-metrics.ts";
import { LruCache } from "../../../lib/lru-cache.ts";
import type { ErrorCode } from "../../contract/errors.ts";
import { BoundedLabel } from "../../metrics/bounded-label.ts";
import { type Answered, HttpMetrics } from "../../metrics/http.ts";
import {
  createRegistry,
  type Exposition,
  expose,
  firstAudioBuckets,
  realTimeBuckets,
  type TierRegistry,
  waitBuckets,
  watchedGauge,
} from "../../metrics/registry.ts";
import type { CheckResult } from "../access/license-check.ts";
import type { LicenseGate } from "../access/license-gate.ts";
import type { OpenSockets } from "../lifecycle/open-sockets.ts";
import type { AudioFormat } from "../request/variants.ts";
import type { LoadTracker } from "../upstream/load-tracker.ts";
import type { PoolStreamFacts } from "../upstream/pool-stream.ts";
import type { Prober } from "../upstream/prober.ts";

export type RequestOutcome = "ok" | "error" | "gone";

/** The metrics of one API process (docs/reference/metrics.md). Every label has a bounded set of values. */
export interface Metrics {
  readonly registry: TierRegistry;
  /** Counts a finished HTTP request. */
  answered(facts: Answered): void;
  /** Counts a finished speech request. */
  spoken(facts: { model: ModelId; voice: string; outcome: RequestOutcome; ranDry: boolean }): void;
  admitted(facts: { model: ModelId; waitedSeconds: number }): void;
  /** Records the time to first audio of a request. If the trace is sampled, `traceId` becomes an exemplar. */
  firstAudio(facts: { model: ModelId; variant: string; seconds: number; traceId: string | undefined }): void;
  audioEncoded(facts: {
    model: ModelId;
    format: AudioFormat;
    audioSeconds: number;
    workSeconds: number;
  }): void;
  retried(facts: { model: ModelId; code: ErrorCode }): void;
  /** Counts a finished stream of a replica. */
  poolStream(facts: PoolStreamFacts): void;
  streamStarted(model: ModelId): void;
  streamEnded(model: ModelId): void;
  /** Counts a synthesis on a WebSocket that was stopped before its end. */
  socketCancelled(model: ModelId): void;
  sharedLimitsAway(isAway: boolean): void;
  oovsDropped(words: number): void;
  /** Counts an online check of the license. */
  licenseChecked(result: CheckResult): void;
  exposition(accept: string | undefined): Promise<Exposition>;
}

/** The sources of the values that are computed when the metrics are requested. */
export interface MetricsSources {
  readonly capacity: number;
  readonly license: Pick<LicenseGate, "verdict">;
  /** Whether online checks are enabled. */
  readonly checksLicense?: boolean;
  readonly prober: Pick<Prober, "configured" | "isReachable">;
  readonly load: Pick<LoadTracker, "read">;
  /** The open WebSockets and their contexts. */
  readonly sockets?: Pick<OpenSockets, "count" | "countContexts">;
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
}

/** The highest number of values of the label `voice`. The server has fewer built-in voices. */
const maxVoices = 500;

export function createMetrics(sources: MetricsSources): Metrics {
  const registry = createRegistry("api");
  const http = new HttpMetrics(registry);
  watchLicense(registry, sources);
  const checks = countChecks(registry, sources);
  watchModels(registry, sources);
  watchPools(registry, sources);
  watchedGauge(
    registry,
    "svc_tts_stream_capacity",
    "Highest number of concurrent requests of this process",
    () => sources.capacity,
  );
  watchSockets(registry, sources);
  const speech = speechMetrics(registry);
  const voices = new BoundedLabel(maxVoices);
  for (const model of modelIds) {
    speech.underruns.inc({ model }, 0); // An alert needs the value 0 before the first event.
    speech.streams.set({ model }, 0);
    speech.socketCancels.inc({ model }, 0);
  }
  return {
    registry,
    answered: (facts) => http.answered(facts),
    spoken({ model, voice, outcome, ranDry }) {
      speech.requests.inc({ model, voice: voices.of(voice), outcome });
      if (ranDry) speech.underruns.inc({ model });
    },
    admitted: ({ model, waitedSeconds }) => speech.wait.observe({ model }, waitedSeconds),
    firstAudio: ({ model, variant, seconds, traceId }) =>
      speech.firstAudio.observe({
        labels: { model, variant },
        value: seconds,
        ...(traceId !== undefined && { exemplarLabels: { trace_id: traceId } }),
      }),
    audioEncoded({ model, format, audioSeconds, workSeconds }) {
      speech.audio.inc({ model, format }, audioSeconds);
      speech.encoding.inc({ format }, workSeconds);
    },
    retried: ({ model, code }) => speech.retries.inc({ model, error_message: code }),
    poolStream: poolCounter(registry),
    streamStarted: (model) => speech.streams.inc({ model }),
    streamEnded: (model) => speech.streams.dec({ model }),
    socketCancelled: (model) => speech.socketCancels.inc({ model }),
    sharedLimitsAway: (isAway) => speech.sharedLimitsAway.set(isAway ? 1 : 0),
    oovsDropped: (words) => speech.oovsDropped.inc(words),
    licenseChecked: (result) => checks?.inc({ result }),
    exposition: (accept) => expose(registry, accept),
  };
}

function speechMetrics(registry: TierRegistry) {
  const registers = [registry];
  return {
    requests: new Counter({
      name: "svc_tts_requests_total",
      help: "Valid synthesis requests by outcome: ok, error, or gone (the client disconnected)",
      labelNames: ["model", "voice", "outcome"],
      registers,
    }),
    firstAudio: new Histogram<string>({
      name: "svc_tts_first_audio_seconds",
      help: "Time from the arrival of a request to its first encoded audio, or to the complete response if that is JSON",
      labelNames: ["model", "variant"],
      buckets: firstAudioBuckets,
      enableExemplars: true,
      registers,
    }),
    underruns: new Counter({
      name: "svc_tts_underruns_total",
      help: "Streams with audio that was more than 100 ms late for real-time playback",
      labelNames: ["model"],
      registers,
    }),
    audio: new Counter({
      name: "svc_tts_audio_seconds_total",
      help: "Seconds of encoded audio",
      labelNames: ["model", "format"],
      registers,
    }),
    encoding: new Counter({
      name: "svc_tts_encode_seconds_total",
      help: "Time spent on resampling and encoding; divide by svc_tts_audio_seconds_total for the time per second of audio",
      labelNames: ["format"],
      registers,
    }),
    wait: new Histogram({
      name: "svc_tts_admission_wait_seconds",
      help: "Time that admitted requests waited for a slot in this process",
      labelNames: ["model"],
      buckets: waitBuckets,
      registers,
    }),
    retries: new Counter({
      name: "svc_tts_retries_total",
      help: "Requests retried on another replica, by the error code of the previous replica",
      labelNames: ["model", "error_message"],
      registers,
    }),
    sharedLimitsAway: new Gauge({
      name: "svc_tts_shared_limits_away",
      help: "1 while Valkey does not respond and each process enforces the limits of API keys by itself, else 0",
      registers,
    }),
    oovsDropped: new Counter({
      name: "svc_tts_oovs_dropped_total",
      help: "Out-of-vocabulary words that were dropped, because too many words waited for the database or a line of the spool was incomplete",
      registers,
    }),
    socketCancels: new Counter({
      name: "svc_tts_socket_cancelled_total",
      help: "Syntheses on WebSockets that stopped before their end, because the client cancelled them or disconnected",
      labelNames: ["model"],
      registers,
    }),
    streams: new Gauge({
      name: "svc_tts_streams",
      help: "Synthesis requests in progress",
      labelNames: ["model"],
      registers,
    }),
  };
}

/**
 * The highest number of pairs of pool and revision. Beyond this limit, the least recently used pair is
 * removed.
 */
const mostRevisions = 32;

/**
 * Creates the metrics of pools and revisions. The number of their labels is bounded, because every rollout
 * adds a revision.
 */
function poolCounter(registry: TierRegistry): Metrics["poolStream"] {
  const registers = [registry];
  const labelNames = ["pool", "revision"];
  const spoken = new Counter({
    name: poolMetrics.spoken,
    help: "Streams requested from replicas of a pool, by outcome: ok, error, refused (full, draining, or invalid request), or gone (the client disconnected); the label revision names a canary and its attempt",
    labelNames: [...labelNames, "outcome"],
    registers,
  });
  const firstAudio = new Histogram({
    name: poolMetrics.firstAudio,
    help: "Time from an invocation of a replica to its first audio, including the queue of the replica",
    labelNames,
    buckets: firstAudioBuckets,
    registers,
  });
  const realTimeFactor = new Histogram({
    name: poolMetrics.realTimeFactor,
    help: "Real-time factor of the streams of a pool: seconds of synthesis for each second of audio",
    labelNames,
    buckets: realTimeBuckets,
    registers,
  });
  const forget = (labels: { pool: string; revision: string }) => {
    for (const outcome of poolOutcomes) spoken.remove({ ...labels, outcome });
    firstAudio.remove(labels);
    realTimeFactor.remove(labels);
  };
  const shown = new LruCache<string, { pool: string; revision: string }>(mostRevisions);
  return ({ pool, revision, outcome, ...figures }) => {
    const labels = { pool, revision };
    const dropped = shown.set(JSON.stringify(labels), labels);
    if (dropped) forget(dropped[1]);
    spoken.inc({ ...labels, outcome });
    if (figures.firstAudioSeconds !== undefined) firstAudio.observe(labels, figures.firstAudioSeconds);
    if (figures.realTimeFactor !== undefined) realTimeFactor.observe(labels, figures.realTimeFactor);
  };
}

function watchSockets(registry: TierRegistry, { sockets }: MetricsSources): void {
  const open = "Open WebSockets of this process, active or idle";
  watchedGauge(registry, "svc_tts_open_sockets", open, () => sockets?.count() ?? 0);
  const contexts = "Open contexts on WebSockets, in synthesis or waiting for text";
  watchedGauge(registry, "svc_tts_socket_contexts", contexts, () => sockets?.countContexts() ?? 0);
}

function watchLicense(registry: TierRegistry, { license, now }: MetricsSources): void {
  new Gauge({
    name: "svc_tts_license_state",
    help: "1 for the current state of the license, 0 for the others",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      for (const state of licenseStates) this.set({ state }, state === license.verdict().state ? 1 : 0);
    },
  });
  new Gauge({
    name: "svc_tts_license_expiry_timestamp_seconds",
    help: "Expiry of the license in seconds since the epoch; absent without a readable license",
    registers: [registry],
    collect() {
      this.remove();
      const expires = license.verdict().claims?.exp;
      if (expires !== undefined) this.set(expires);
    },
  });
  new Gauge({
    name: "svc_tts_license_grace_remaining_seconds",
    help: "Remaining grace period in seconds; absent outside the grace period",
    registers: [registry],
    collect() {
      this.remove();
      const until = license.verdict().graceUntil;
      if (until !== undefined) this.set(Math.max(0, (until - now()) / 1000));
    },
  });
}

/** Creates the metrics of online checks, if online checks are on. */
function countChecks(
  registry: TierRegistry,
  { license, checksLicense = false }: MetricsSources,
): Counter | undefined {
  if (!checksLicense) return undefined;
  new Gauge({
    name: "svc_tts_license_check_timestamp_seconds",
    help: "Time of the last valid response of the license issuer, in seconds since the epoch; absent before the first response, and without online checks",
    registers: [registry],
    collect() {
      this.remove();
      const checkedAt = license.verdict().checkedAt;
      if (checkedAt !== undefined) this.set(checkedAt / 1000);
    },
  });
  const checks = new Counter({
    name: "svc_tts_license_checks_total",
    help: "Requests to the license issuer by result: good, revoked, or failed (no valid response)",
    labelNames: ["result"],
    registers: [registry],
  });
  for (const result of ["good", "revoked", "failed"]) checks.inc({ result }, 0);
  return checks;
}

function watchModels(registry: TierRegistry, { prober }: MetricsSources): void {
  new Gauge({
    name: "svc_tts_model_reachable",
    help: "1 if a replica of the model responds or a pool of the model is scaled to zero, else 0; only for models of the routing table",
    labelNames: ["model"],
    registers: [registry],
    collect() {
      for (const model of modelIds) {
        if (prober.configured().includes(model)) this.set({ model }, prober.isReachable(model) ? 1 : 0);
        else this.remove({ model });
      }
    },
  });
}

/** Creates the gauges of pools. The routing table bounds the number of pools. */
function watchPools(registry: TierRegistry, { load }: MetricsSources): void {
  const gauge = (name: string, help: string, figure: (pool: PoolLoad) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["pool"],
      registers: [registry],
      collect() {
        this.reset();
        for (const [pool, figures] of Object.entries(load.read().pools)) this.set({ pool }, figure(figures));
      },
    });
  gauge(
    "svc_tts_pool_streams",
    "Requests of this process to a pool that are in progress, queued, or held until the pool has a replica",
    ({ streams, waiting }) => streams + waiting,
  );
  gauge(
    "svc_tts_pool_waiting",
    "Requests that this process holds until the pool has a replica",
    ({ waiting }) => waiting,
  );
}
