import type { ArcanaEngineName, ModelId, ModelKind } from "../../config/contract/models.ts";
import type { Clock } from "../../lib/clock.ts";
import type { GeneratorSettings } from "../engine/vllm/settings.ts";
import type { TelemetrySettings } from "../telemetry/settings.ts";
import type { TracingSettings } from "../tracing/settings.ts";
import type { TokenSource } from "./access.ts";

export interface ModelTierOptions {
  readonly tier: ModelKind;
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** Tokens that API tiers must send to `/invocations`. */
  readonly tokens: TokenSource;
  readonly maxConcurrentStreams: number;
  /** Longest time for running streams to finish after `stop`. */
  readonly drainSeconds: number;
  /** A level of pino: `info`, `warn`, `silent`… */
  readonly logLevel: string;
  /** Undefined while traces are off. */
  readonly tracing?: TracingSettings | undefined;
  /** Undefined if metrics are not pushed. */
  readonly telemetry?: TelemetrySettings | undefined;
  /** Number of engine processes of each kind. By default one for each core. */
  readonly engineProcesses?: number;
  /** The generator of arcana; `mini` by default. */
  readonly generator?: ArcanaEngineName;
  /** The model of the generator `vllm`. */
  readonly model?: GeneratorSettings;
  /** Folder of mounted neural voices. */
  readonly voices?: VoicesFolder;
  /** Folder of mounted Hunspell dictionaries. */
  readonly dictionaryFolder?: string;
  /** Longest wait for a slot; 5 s by default. */
  readonly queueDeadlineMs?: number;
  /** Clock of the queue's deadline and of the drain. By default the system's clock. */
  readonly clock?: Clock;
}

export interface VoicesFolder {
  /** Folder of mounted voices. */
  readonly folder?: string;
  /** Models that `svc-tts models` installs; readiness does not wait for them. */
  readonly installed?: string;
  /** A folder with the model of arcana's generator, which is not searched for voices. */
  readonly except?: string;
  /** ONNX Runtime's execution providers, in order of preference. */
  readonly providers: readonly string[];
  /**
   * Number of processes of each mounted model. By default one per core for Piper, and one per two cores, at
   * most 4, for Kokoro.
   */
  readonly processes?: number;
  /** Streams that one mounted model serves at once, in place of the measured number. */
  readonly streams?: number;
  /** Models whose built-in voices a mounted voice speaks for if its manifest says that it may. */
  readonly naturalModels?: readonly ModelId[];
  /** Whether the built-in engine speaks for a replaced voice while the mounted model is at capacity. */
  readonly fallsBack?: boolean;
  /** Interval of checking the folder; 1 s by default. */
  readonly intervalMs?: number;
}
