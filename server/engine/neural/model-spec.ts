import type { InferenceSession } from "onnxruntime-node";

/** What an engine process is told of the model that it runs; given to it as JSON. */
export type ModelSpec = PiperSpec | KokoroSpec;

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
  /** A style file for each voice. */
  readonly styles: readonly string[];
}

export interface RuntimeOptions {
  /** In order of preference: `cuda`, `cpu`. */
  readonly providers: readonly string[];
  /** For one phrase. */
  readonly threads: number;
}

/** Settings of ONNX Runtime that hold for every model. */
export function sessionOptions({ providers, threads }: RuntimeOptions): InferenceSession.SessionOptions {
  return {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    enableMemPattern: false, // a pattern is kept for every length of a phrase, and no two are alike
    logSeverityLevel: 3,
  };
}
