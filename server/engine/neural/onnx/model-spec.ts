import type { InferenceSession } from "onnxruntime-node";

/** The description of a model for its engine process, passed as JSON. */
export type NeuralModelSpec = PiperSpec | KokoroSpec;

interface CommonSpec {
  /** The ONNX file. */
  readonly model: string;
  /** SHA-256 of that file in hexadecimal digits. Another file is rejected. */
  readonly sha256: string;
  /** Hz. */
  readonly rate: number;
  readonly runtime: RuntimeOptions;
}

export interface PiperSpec extends CommonSpec {
  readonly kind: "piper";
  /** IDs of each phoneme, which is one Unicode character. `_`, `^` and `$` are padding, begin and end. */
  readonly ids: Readonly<Record<string, readonly number[]>>;
  readonly isMultiSpeaker: boolean;
  readonly noiseScale: number;
  readonly lengthScale: number;
  readonly noiseWidth: number;
}

export interface KokoroSpec extends CommonSpec {
  readonly kind: "kokoro";
  readonly ids: Readonly<Record<string, number>>;
  readonly voices: readonly KokoroVoice[];
  /** The rewritten model, used if the processor computes it exactly. */
  readonly rewritten?: RewrittenGraph;
}

/** The same model with integer convolutions as matrix products. */
export interface RewrittenGraph {
  readonly model: string;
  readonly sha256: string;
  readonly weights: WeightType;
}

/**
 * Type of the integer products. int8 is faster on processors with instructions for it, and inexact on some
 * others.
 */
export type WeightType = "int8" | "uint8";

interface KokoroVoice {
  /** File of the style table. */
  readonly style: string;
  /** The eSpeak NG voice that reads for it. */
  readonly espeak: string;
}

export interface RuntimeOptions {
  /** Execution providers in order of preference: `cuda`, `cpu`. */
  readonly providers: readonly string[];
  /** Threads for one phrase. */
  readonly threads: number;
  /** Threads for one phrase while no other phrase runs. */
  readonly threadsAlone: number;
}

/**
 * How long an idle thread spins before it sleeps: the work items of one phrase follow each other faster than
 * this, and the cores become free soon after it.
 */
const spinMicroseconds = "100";

/** Settings of ONNX Runtime for every model. */
export function sessionOptions({
  providers,
  threads,
}: Pick<RuntimeOptions, "providers" | "threads">): InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    extra: { session: { intra_op: { spin_duration_us: spinMicroseconds } } },
    interOpNumThreads: 1,
    enableMemPattern: false, // A memory pattern is cached for every length of a phrase, and no two lengths are alike.
    logSeverityLevel: 3,
  };
}
