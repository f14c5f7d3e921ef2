import type { CodecManifest } from "../model/manifest.ts";
import type { CodecFrame } from "./frame-reader.ts";

/** What a codec process is told when it is started, as JSON in its first argument. */
export interface CodecSpec {
  /** The ONNX file. */
  readonly file: string;
  readonly codec: CodecManifest;
  /** Of ONNX Runtime, in order of preference: `cuda`, `cpu`. */
  readonly providers: readonly string[];
}

/** Samples from `first` to before `end`, or to the last one there is. */
export interface SampleRange {
  readonly first: number;
  readonly end: number;
}

/** A window of frames to decode, and the samples that are wanted of it: the context is not worth its way. */
export interface WindowJob {
  readonly frames: readonly CodecFrame[];
  readonly wanted: SampleRange;
}

/** Windows to decode at once; all have the same number of frames. */
export interface CodecJob {
  readonly id: number;
  readonly windows: readonly WindowJob[];
}

/** What the process says: once that it is ready, then the answer to each job. */
export type CodecAnswer =
  | {
      readonly kind: "ready" /** Seconds of work for a second of sound, at the longest hop. */;
      readonly cost: number;
    }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "decoded"; readonly id: number; readonly audio: readonly Int16Array[] }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
