import type { CodecManifest } from "../model/manifest-schema.ts";
import type { CodecFrame } from "./frame-reader.ts";

/** The settings of a codec process. The process receives the settings as JSON in its first argument. */
export interface CodecSpec {
  /** The path of the ONNX file. */
  readonly file: string;
  readonly codec: CodecManifest;
  /** The execution providers of ONNX Runtime in order of preference, for example `cuda` and `cpu`. */
  readonly providers: readonly string[];
}

/** A range of samples, from `first` to before `end`. A range may end after the last sample. */
export interface SampleRange {
  readonly first: number;
  readonly end: number;
}

/** A window of frames to decode, and the samples to return. Samples of the context are not returned. */
export interface WindowJob {
  readonly frames: readonly CodecFrame[];
  readonly wanted: SampleRange;
}

/** Windows to decode together. All windows have the same number of frames. */
export interface CodecJob {
  readonly id: number;
  readonly windows: readonly WindowJob[];
}

/** The messages of a codec process: one message when the process is ready, and one response to each job. */
export type CodecAnswer =
  | {
      readonly kind: "ready";
      /** The seconds of work for each second of audio, at the longest hop. */
      readonly cost: number;
    }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "decoded"; readonly id: number; readonly audio: readonly Int16Array[] }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
