import { Counter, Gauge, Histogram } from "prom-client";
import { type ModelId, type ModelKind, modelsOfKind } from "../../config/contract/models.ts";
import type { MountedVoices } from "../engine/neural/mounted-voices.ts";
import type { Engine } from "../engine/runtime/engine.ts";
import type { GeneratorCounts } from "../engine/runtime/generator-counts.ts";
import { type Answered, HttpMetrics } from "../metrics/http.ts";
import {
  createRegistry,
  type Exposition,
  expose,
  firstAudioBuckets,
  realTimeBuckets,
  type TierRegistry,
  waitBuckets,
  watchedGauge,
} from "../metrics/registry.ts";
import { noTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import type { Admission } from "./admission.ts";

/**
 * The metrics of a model tier: those of `/metrics` (docs/reference/metrics.md), and those that it pushes
 * (docs/reference/metrics-otlp.md).
 */
export class TierMetrics {
  readonly registry: TierRegistry;
  readonly #telemetry: Telemetry;
  readonly #http: HttpMetrics;
  readonly #speech: ReturnType<typeof speechMetrics>;

  constructor(
    tier: ModelKind,
    admission: Admission,
    engines: () => readonly Engine[],
    mounted: () => MountedVoices | undefined,
    telemetry: Telemetry = noTelemetry,
  ) {
    this.#telemetry = telemetry;
    this.registry = createRegistry(tier);
    this.#http = new HttpMetrics(this.registry);
    this.#speech = speechMetrics(this.registry);
    const watch = (name: string, help: string, value: () => number) =>
      watchedGauge(this.registry, name, help, value);
    watch("svc_tts_model_streams", "Streams that speak now", () => admission.speaking);
    watch(
      "svc_tts_model_stream_capacity",
      "Streams that may speak at once",
      () => admission.limits.maxStreams,
    );
    watch("svc_tts_model_queue_depth", "Requests that wait for a stream", () => admission.queued);
    watchEngines(this.registry, engines);
    if (tier === "arcana") watchGenerators(this.registry, engines);
    watch("svc_tts_mounted_voices", "Mounted voices that are served", () => mounted()?.voices().length ?? 0);
    watch(
      "svc_tts_mounted_models",
      "Mounted models in memory, those that only end their streams included",
      () => mounted()?.modelsInMemory() ?? 0,
    );
    watch(
      "svc_tts_mounted_voice_problems",
      "Mounted voices that are not served as they are in their folder; the log says why",
      () => mounted()?.problems().length ?? 0,
    );
    for (const model of modelsOfKind(tier)) this.#speech.audio.inc({ model }, 0);
  }

  answered(facts: Answered): void {
    this.#http.answered(facts);
  }

  /** Counts an authenticated speech request. */
  invoked(): void {
    this.#telemetry.invoked();
  }

  /** Counts a stream that got its slot. @returns a function to call when the slot is free again. */
  began(waitedSeconds: number): () => void {
    this.#speech.wait.observe(waitedSeconds);
    this.#telemetry.began();
    return () => this.#telemetry.ended();
  }

  firstAudio(model: ModelId, seconds: number): void {
    this.#speech.firstAudio.observe({ model }, seconds);
    this.#telemetry.firstAudio(seconds * 1000);
  }

  /** Counts a finished stream. @param workSeconds time spent on waiting for its audio only. */
  spoke(model: ModelId, audioSeconds: number, workSeconds: number): void {
    this.#speech.audio.inc({ model }, audioSeconds);
    if (audioSeconds === 0) return;
    this.#speech.realTimeFactor.observe({ model }, workSeconds / audioSeconds);
    this.#telemetry.generated(audioSeconds);
  }

  exposition(accept: string | undefined): Promise<Exposition> {
    return expose(this.registry, accept);
  }
}

function speechMetrics(registry: TierRegistry) {
  const registers = [registry];
  const labelNames = ["model"];
  return {
    firstAudio: new Histogram({
      name: "svc_tts_model_first_audio_seconds",
      help: "From the arrival of an invocation to its first audio, waiting included",
      labelNames,
      buckets: firstAudioBuckets,
      registers,
    }),
    wait: new Histogram({
      name: "svc_tts_model_queue_wait_seconds",
      help: "How long admitted requests waited for a stream",
      buckets: waitBuckets,
      registers,
    }),
    realTimeFactor: new Histogram({
      name: "svc_tts_model_real_time_factor",
      help: "Of each stream: seconds spent on making its audio, for each second of audio; below 1 is faster than speech",
      labelNames,
      buckets: realTimeBuckets,
      registers,
    }),
    audio: new Counter({
      name: "svc_tts_model_audio_seconds_total",
      help: "Speech made, in seconds of sound",
      labelNames,
      registers,
    }),
  };
}

/** Metrics of a language model that vLLM serves. */
function watchGenerators(registry: TierRegistry, engines: () => readonly Engine[]): void {
  const registers = [registry];
  new Gauge({
    name: "svc_tts_generator_phrases",
    help: "Phrases that the language model speaks now",
    registers,
    collect() {
      for (const { counts } of engines()) if (counts) this.set(counts.writing);
    },
  });
  const count = (name: string, help: string, value: (counts: GeneratorCounts) => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        for (const { counts } of engines()) if (counts) this.inc(value(counts));
      },
    });
  count("svc_tts_generator_tokens_total", "Tokens that the language model wrote", ({ tokens }) => tokens);
  count(
    "svc_tts_generator_dropped_tokens_total",
    "Tokens that belonged to no frame of sound",
    ({ droppedTokens }) => droppedTokens,
  );
  count(
    "svc_tts_generator_aborted_total",
    "Phrases whose caller went away before their end",
    ({ aborted }) => aborted,
  );
  new Counter({
    name: "svc_tts_generator_troubles_total",
    help: "Tries to speak a phrase that failed: the generator was away or broke off, refused, or wrote nonsense",
    labelNames: ["kind"],
    registers,
    collect() {
      this.reset();
      for (const { counts } of engines()) {
        for (const [kind, tries] of Object.entries(counts?.troubles ?? {})) this.inc({ kind }, tries);
      }
    },
  });
}

function watchEngines(registry: TierRegistry, engines: () => readonly Engine[]): void {
  new Counter({
    name: "svc_tts_engine_restarts_total",
    help: "Engine processes that ended by themselves and were replaced",
    labelNames: ["engine"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name, restarts } of engines()) this.inc({ engine: name }, restarts);
    },
  });
  new Gauge({
    name: "svc_tts_engine_up",
    help: "1 while the engine speaks or comes back within its restart budget, else 0",
    labelNames: ["engine"],
    registers: [registry],
    collect() {
      for (const engine of engines()) this.set({ engine: engine.name }, engine.healthy() ? 1 : 0);
    },
  });
}
