import type { InferenceSession } from "onnxruntime-node";

/** The description of a model, which its engine process receives as JSON. */
export type NeuralModelSpec = PiperSpec | KokoroSpec;

interface CommonSpec {
  /** The path of the ONNX file. */
  readonly model: string;
  /** The SHA-256 digest of the file in hexadecimal digits. A file with another digest is rejected. */
  readonly sha256: string;
  /** The sampling rate in Hz. */
  readonly rate: number;
  readonly runtime: RuntimeOptions;
}

export interface PiperSpec extends CommonSpec {
  readonly kind: "piper";
  /**
   * The IDs of each phoneme, which is one Unicode character. `_`, `^` and `$` are the padding, the start and
   * the end.
   */
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
  /** The rewritten graph. The engine selects this graph if the CPU computes the graph exactly. */
  readonly rewritten?: RewrittenGraph;
}

/** A graph of the same model that has matrix products instead of integer convolutions. */
export interface RewrittenGraph {
  readonly model: string;
  readonly sha256: string;
  readonly weights: WeightType;
  /** The same graph in two files, which synthesizes in windows. */
  readonly windows?: SplitFiles;
}

/** The files of a split graph. */
export interface SplitFiles {
  readonly front: CheckedFile;
  readonly generator: CheckedFile;
  /** The means of voices, as float32 values (`voice-means.ts`). Each voice has one row. */
  readonly means: CheckedFile;
  /** The row of each speaker in `means`. The value is -1 if the speaker has no row. */
  readonly rows: readonly number[];
  /** The number of means of a line. */
  readonly channels: number;
}

/** A file and its SHA-256 digest in hexadecimal digits. */
export interface CheckedFile {
  readonly path: string;
  readonly sha256: string;
}

/**
 * The type of the weights in integer products. int8 is faster on CPUs that have instructions for int8
 * products, but gives inexact products on some other CPUs.
 */
export type WeightType = "int8" | "uint8";

interface KokoroVoice {
  /** The path of the style table. */
  readonly style: string;
  /** The eSpeak NG voice that reads text for this voice. */
  readonly espeak: string;
}

export interface RuntimeOptions {
  /** The execution providers in order of preference, for example `cuda` and `cpu`. */
  readonly providers: readonly string[];
  /** The number of threads for one phrase. */
  readonly threads: number;
  /** The number of threads for a phrase that runs alone. */
  readonly threadsAlone: number;
}

/**
 * The time for which an idle thread spins before it sleeps. This time is longer than the gap between two work
 * items of a phrase, and short enough to free the cores after the phrase.
 */
const spinMicroseconds = "100";

/** Returns the options of ONNX Runtime for a model. */
export function sessionOptions({
  providers,
  threads,
}: Pick<RuntimeOptions, "providers" | "threads">): InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    extra: { session: { intra_op: { spin_duration_us: spinMicroseconds } } },
    interOpNumThreads: 1,
    // ONNX Runtime would cache a memory pattern for every length of a phrase, and lengths rarely repeat.
    enableMemPattern: false,
    logSeverityLevel: 3,
  };
}
