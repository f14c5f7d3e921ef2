import type { ModelKind } from "../../config/contract/models.ts";
import type { Clock } from "../../lib/clock.ts";
import type { ArcanaEngineName } from "../engine/generators.ts";
import type { GeneratorSettings } from "../engine/vllm/settings.ts";
import type { TelemetrySettings } from "../telemetry/settings.ts";
import type { TracingSettings } from "../tracing/settings.ts";
import type { TokenSource } from "./access.ts";

export interface ModelTierOptions {
  readonly tier: ModelKind;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Tokens that API tiers must send to `/invocations`. */
  readonly tokens: TokenSource;
  readonly maxConcurrentStreams: number;
  /** How long running streams may take to finish after `stop`. */
  readonly drainSeconds: number;
  /** As pino names it: `info`, `warn`, `silent`… */
  readonly logLevel: string;
  /** Undefined while traces are off. */
  readonly tracing?: TracingSettings | undefined;
  /** Undefined where no metrics are sent. */
  readonly telemetry?: TelemetrySettings | undefined;
  /** Engine processes of each kind; as many as the machine has cores unless given. */
  readonly engineProcesses?: number;
  /** What writes arcana's speech; `mini` unless given. */
  readonly generator?: ArcanaEngineName;
  /** The model of the generator `vllm`. */
  readonly model?: GeneratorSettings;
  /** Neural voices that an administrator mounts. */
  readonly voices?: VoicesFolder;
  /** Hunspell dictionaries that an administrator mounts. */
  readonly dictionaryFolder?: string;
  /** Longest wait for a stream; 5 s unless given. */
  readonly queueDeadlineMs?: number;
  /** Of the queue's deadline and of the drain; the system's unless given. */
  readonly clock?: Clock;
}

export interface VoicesFolder {
  /** Voices that an administrator mounts. */
  readonly folder?: string;
  /** Models that `svc-tts models` installs; readiness does not wait for them. */
  readonly installed?: string;
  /** A folder in it, or itself, that holds no voices but the model of arcana's generator. */
  readonly except?: string;
  /** ONNX Runtime's execution providers, in order of preference. */
  readonly providers: readonly string[];
  /** Of each mounted model; Piper: one a core, Kokoro: one for two cores, at most 4, unless given. */
  readonly processes?: number;
  /** Between two looks at the folder; 1 s unless given. */
  readonly intervalMs?: number;
}
