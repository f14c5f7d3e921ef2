import type { ArcanaEngineName, ModelId, ModelKind } from "../../config/contract/models.ts";
import type { Clock } from "../../lib/clock.ts";
import type { GeneratorSettings } from "../engine/vllm/settings.ts";
import type { TelemetrySettings } from "../telemetry/settings.ts";
import type { TracingSettings } from "../tracing/settings.ts";
import type { TokenSource } from "./access.ts";

export interface ModelTierOptions {
  readonly tier: ModelKind;
  readonly host: string;
  /** The port to listen on. 0 selects a free port. */
  readonly port: number;
  /** The internal tokens that API tiers must send to `/invocations`. */
  readonly tokens: TokenSource;
  readonly maxConcurrentStreams: number;
  /** The longest time after `stop` in which running streams may finish. */
  readonly drainSeconds: number;
  /** The log level of pino, for example `info`, `warn` or `silent`. */
  readonly logLevel: string;
  /** The settings of traces. The value is undefined if traces are off. */
  readonly tracing?: TracingSettings | undefined;
  /** The settings of pushed metrics. The value is undefined if metrics are not pushed. */
  readonly telemetry?: TelemetrySettings | undefined;
  /** The number of engine processes of each kind. The default is one for each core. */
  readonly engineProcesses?: number;
  /** The generator of arcana. The default is `mini`. */
  readonly generator?: ArcanaEngineName;
  /** The language model of the generator `vllm`. */
  readonly model?: GeneratorSettings;
  /** The settings of mounted voices. */
  readonly voices?: VoicesFolder;
  /** The folder of mounted Hunspell dictionaries. */
  readonly dictionaryFolder?: string;
  /** The longest wait for a slot. The default is 5 s. */
  readonly queueDeadlineMs?: number;
  /** The clock of the queue's deadline and of the drain. The default is the system's clock. */
  readonly clock?: Clock;
}

export interface VoicesFolder {
  /** The folder of mounted voices. */
  readonly folder?: string;
  /** The folder of models that `svc-tts models` installs. Readiness does not wait for these models. */
  readonly installed?: string;
  /** The folder of the generator's model. The server does not search this folder for voices. */
  readonly except?: string;
  /** The execution providers of ONNX Runtime, in order of preference. */
  readonly providers: readonly string[];
  /**
   * The number of processes of each mounted model. The default for Piper is one for each core. The default
   * for Kokoro is one for each two cores, at most 4.
   */
  readonly processes?: number;
  /** The number of concurrent streams of each mounted model. This number replaces the measured number. */
  readonly streams?: number;
  /**
   * The models in which mounted voices replace the built-in voices that their manifests list in `mayReplace`.
   */
  readonly naturalModels?: readonly ModelId[];
  /** Whether the built-in engine synthesizes a replaced voice while the mounted model is at capacity. */
  readonly fallsBack?: boolean;
  /** The interval at which the folders are checked. The default is 1 s. */
  readonly intervalMs?: number;
}
