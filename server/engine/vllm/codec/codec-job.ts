import type { CodecManifest } from "../model/manifest.ts";
import type { CodecFrame } from "./frame-reader.ts";

/** Settings of a codec process, passed as JSON in its first argument. */
export interface CodecSpec {
  /** The ONNX file. */
  readonly file: string;
  readonly codec: CodecManifest;
  /** Execution providers of ONNX Runtime in order of preference: `cuda`, `cpu`. */
  readonly providers: readonly string[];
}

/** Samples from `first` to before `end`, or to the last one. */
export interface SampleRange {
  readonly first: number;
  readonly end: number;
}

/** A window of frames to decode, and the wanted samples. The samples of the context are not sent. */
export interface WindowJob {
  readonly frames: readonly CodecFrame[];
  readonly wanted: SampleRange;
}

/** Windows to decode together. All have the same number of frames. */
export interface CodecJob {
  readonly id: number;
  readonly windows: readonly WindowJob[];
}

/** Messages of the process: once that it is ready, then a response to each job. */
export type CodecAnswer =
  | {
      readonly kind: "ready" /** Seconds of work for each second of audio, at the longest hop. */;
      readonly cost: number;
    }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "decoded"; readonly id: number; readonly audio: readonly Int16Array[] }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
