import type { InferenceSession } from "onnxruntime-node";

/** What an engine process is told of the model that it runs; given to it as JSON. */
export type NeuralModelSpec = PiperSpec | KokoroSpec;

interface CommonSpec {
  /** The ONNX file. */
  readonly model: string;
  /** Of that file, in hexadecimal: another one is not loaded. */
  readonly sha256: string;
  /** Hz. */
  readonly rate: number;
  readonly runtime: RuntimeOptions;
}

export interface PiperSpec extends CommonSpec {
  readonly kind: "piper";
  /** Ids of each phoneme, a Unicode character each; `_`, `^` and `$` are pad, begin and end. */
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
  /** Spoken with where the processor computes it exactly. */
  readonly rewritten?: RewrittenGraph;
}

/** The same model with integer convolutions as products. */
export interface RewrittenGraph {
  readonly model: string;
  readonly sha256: string;
  readonly weights: WeightType;
}

/** Of products of integers: int8 is faster where a processor has instructions for it; on some it is not exact. */
export type WeightType = "int8" | "uint8";

interface KokoroVoice {
  /** The file of its style table. */
  readonly style: string;
  /** The eSpeak NG voice that reads for it. */
  readonly espeak: string;
}

export interface RuntimeOptions {
  /** In order of preference: `cuda`, `cpu`. */
  readonly providers: readonly string[];
  /** For one phrase. */
  readonly threads: number;
  /** For one phrase while nothing else is spoken. */
  readonly threadsAlone: number;
}

/**
 * How long a thread that has nothing to do looks for the next piece of work before it sleeps: the pieces of one phrase follow each other in
 * less, and the cores are for the other processes again soon after it.
 */
const spinMicroseconds = "100";

/** Settings of ONNX Runtime that hold for every model. */
export function sessionOptions({
  providers,
  threads,
}: Pick<RuntimeOptions, "providers" | "threads">): InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    extra: { session: { intra_op: { spin_duration_us: spinMicroseconds } } },
    interOpNumThreads: 1,
    enableMemPattern: false, // a pattern is kept for every length of a phrase, and no two are alike
    logSeverityLevel: 3,
  };
}
