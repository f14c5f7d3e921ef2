/** Address of the model's vLLM. */
export type ServerSettings =
  | { readonly kind: "elsewhere"; readonly url: string; readonly apiKey: string | undefined }
  | {
      readonly kind: "here";
      /** The program `vllm`, as a path or a name on PATH. */
      readonly program: string;
      /** Appended after those of the manifest. */
      readonly args: readonly string[];
      readonly environment: Readonly<Record<string, string>>;
      /** Port of the loopback address for vLLM. A free one if undefined. */
      readonly port: number | undefined;
      /** Port at which the tier serves vLLM's metrics. Undefined disables it. */
      readonly metricsPort?: number | undefined;
      /** Random if undefined. */
      readonly apiKey: string | undefined;
    };

/** A mounted model that vLLM serves. */
export interface GeneratorSettings {
  /** Contains `manifest.json`. */
  readonly folder: string;
  readonly server: ServerSettings;
  /** Longest duration of a start of vLLM. */
  readonly startSeconds: number;
  /** Longest time without output during a request, until vLLM counts as hung. */
  readonly hangSeconds: number;
  /**
   * Longest wait for the durations of words after the end of the speech. Without them there are no word
   * timestamps. 500 by default.
   */
  readonly timesWithinMs?: number;
  /** Concurrent streams. Measured if undefined. */
  readonly capacity: number | undefined;
  /** Seed of every phrase. Selected by vLLM if undefined. */
  readonly seed: number | undefined;
  readonly codec: {
    /** Execution providers of ONNX Runtime in order of preference: `cuda`, `cpu`. */
    readonly providers: readonly string[];
    /** Decoder processes. By default one per core, or one on a GPU. */
    readonly processes: number | undefined;
  };
}
