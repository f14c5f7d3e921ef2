import type { Frame } from "./frame-reader.ts";
import type { CodecManifest } from "./manifest.ts";

/** What a codec process is told when it is started, as JSON in its first argument. */
export interface CodecSpec {
  /** The ONNX file. */
  readonly file: string;
  readonly codec: CodecManifest;
  /** Of ONNX Runtime, in order of preference: `cuda`, `cpu`. */
  readonly providers: readonly string[];
}

/** Windows to decode at once; all have the same number of frames. */
export interface CodecJob {
  readonly id: number;
  readonly windows: readonly (readonly Frame[])[];
}

/** What the process says: once that it is ready, then the answer to each job. */
export type CodecAnswer =
  | {
      readonly kind: "ready" /** Seconds of work for a second of sound, at the longest hop. */;
      readonly cost: number;
    }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "decoded"; readonly id: number; readonly audio: readonly Float32Array[] }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
