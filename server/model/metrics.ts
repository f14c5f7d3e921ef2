import { Counter, Gauge, Histogram } from "prom-client";
import { type ModelId, type ModelKind, modelsOfKind } from "../../config/contract/models.ts";
import type { MountedVoices } from "../engine/neural/mounted-voices.ts";
import type { Engine } from "../engine/runtime/engine.ts";
import type { GeneratorCounts } from "../engine/runtime/generator-outcomes.ts";
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
import type { EngineAdmission } from "./engine-admission.ts";

/**
 * The metrics of a model tier: the metrics of `/metrics` (docs/reference/metrics.md) and the pushed metrics
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
    engineAdmission: EngineAdmission,
    telemetry: Telemetry = noTelemetry,
  ) {
    this.#telemetry = telemetry;
    this.registry = createRegistry(tier);
    this.#http = new HttpMetrics(this.registry);
    this.#speech = speechMetrics(this.registry);
    const watch = (name: string, help: string, value: () => number) =>
      watchedGauge(this.registry, name, help, value);
    watch("svc_tts_model_streams", "Streams in progress", () => admission.speaking);
    watch(
      "svc_tts_model_stream_capacity",
      "Highest number of concurrent streams",
      () => admission.limits.maxStreams,
    );
    const queuedForMounted = () =>
      (mounted()?.engines() ?? []).map((engine) => engineAdmission.ofMounted(engine)?.queued ?? 0);
    watch("svc_tts_model_queue_depth", "Requests in the queue for a stream", () =>
      queuedForMounted().reduce((sum, queued) => sum + queued, admission.queued),
    );
    watchEngines(this.registry, engines);
    if (tier === "arcana") watchGenerators(this.registry, engines);
    watch(
      "svc_tts_mounted_voices",
      "Mounted voices that are available",
      () => mounted()?.voices().length ?? 0,
    );
    watch(
      "svc_tts_mounted_models",
      "Mounted models in memory, including removed models whose streams have not ended",
      () => mounted()?.modelsInMemory() ?? 0,
    );
    watch(
      "svc_tts_mounted_voice_problems",
      "Mounted voices with a problem; the log states the reason",
      () => mounted()?.problems().length ?? 0,
    );
    watchMountedModels(this.registry, mounted, engineAdmission);
    for (const model of modelsOfKind(tier)) this.#speech.audio.inc({ model }, 0);
  }

  answered(facts: Answered): void {
    this.#http.answered(facts);
  }

  /** Counts an authenticated speech request. */
  invoked(): void {
    this.#telemetry.invoked();
  }

  /**
   * Counts a stream that got its slot.
   * @returns a function to call when the slot is released.
   */
  began(waitedSeconds: number): () => void {
    this.#speech.wait.observe(waitedSeconds);
    this.#telemetry.began();
    return () => this.#telemetry.ended();
  }

  firstAudio(model: ModelId, seconds: number): void {
    this.#speech.firstAudio.observe({ model }, seconds);
    this.#telemetry.firstAudio(seconds * 1000);
  }

  /**
   * Counts a finished stream.
   * @param workSeconds the time for which the tier waited for the stream's audio.
   */
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
      help: "Time from the arrival of an invocation to its first audio, including its queue",
      labelNames,
      buckets: firstAudioBuckets,
      registers,
    }),
    wait: new Histogram({
      name: "svc_tts_model_queue_wait_seconds",
      help: "Time that admitted requests waited in the queue for a stream",
      buckets: waitBuckets,
      registers,
    }),
    realTimeFactor: new Histogram({
      name: "svc_tts_model_real_time_factor",
      help: "Seconds of synthesis for each second of audio, for each stream; below 1 is faster than real time",
      labelNames,
      buckets: realTimeBuckets,
      registers,
    }),
    audio: new Counter({
      name: "svc_tts_model_audio_seconds_total",
      help: "Seconds of synthesized audio",
      labelNames,
      registers,
    }),
  };
}

/** Creates the metrics of a language model that vLLM serves. */
function watchGenerators(registry: TierRegistry, engines: () => readonly Engine[]): void {
  const registers = [registry];
  new Gauge({
    name: "svc_tts_generator_phrases",
    help: "Phrases that the language model is generating",
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
  count("svc_tts_generator_tokens_total", "Tokens generated by the language model", ({ tokens }) => tokens);
  count(
    "svc_tts_generator_dropped_tokens_total",
    "Tokens dropped because they belong to no audio frame",
    ({ droppedTokens }) => droppedTokens,
  );
  count(
    "svc_tts_generator_aborted_total",
    "Phrases that were not finished because the client disconnected",
    ({ aborted }) => aborted,
  );
  new Counter({
    name: "svc_tts_generator_troubles_total",
    help: "Failed attempts to generate a phrase, by kind: the generator was unavailable or disconnected, rejected the request, or returned invalid tokens",
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

/** Creates the metrics of mounted models. The values of models of the same kind are added. */
function watchMountedModels(
  registry: TierRegistry,
  mounted: () => MountedVoices | undefined,
  admission: EngineAdmission,
): void {
  const watch = (name: string, help: string, value: (engine: Engine) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ["engine"],
      registers: [registry],
      collect() {
        this.reset();
        for (const engine of mounted()?.engines() ?? []) this.inc({ engine: engine.name }, value(engine));
      },
    });
  watch(
    "svc_tts_mounted_model_streams",
    "Streams that a mounted model synthesizes",
    (engine) => admission.ofMounted(engine)?.speaking ?? 0,
  );
  watch(
    "svc_tts_mounted_model_stream_capacity",
    "Concurrent streams that a mounted model serves without gaps, by its measured speed",
    ({ realTimeStreams = 0 }) => realTimeStreams,
  );
}

function watchEngines(registry: TierRegistry, engines: () => readonly Engine[]): void {
  new Counter({
    name: "svc_tts_engine_restarts_total",
    help: "Engine processes that ended unexpectedly and were restarted",
    labelNames: ["engine"],
    registers: [registry],
    collect() {
      this.reset();
      for (const { name, restarts } of engines()) this.inc({ engine: name }, restarts);
    },
  });
  new Gauge({
    name: "svc_tts_engine_up",
    help: "1 while the engine runs, and for the first 30 s of an interruption (vLLM: twice GENERATOR_START_SECONDS), else 0",
    labelNames: ["engine"],
    registers: [registry],
    collect() {
      for (const engine of engines()) this.set({ engine: engine.name }, engine.healthy() ? 1 : 0);
    },
  });
}
