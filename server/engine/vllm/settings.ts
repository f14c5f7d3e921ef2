/** Where the model's vLLM is. */
export type ServerSettings =
  | { readonly kind: "elsewhere"; readonly url: string; readonly apiKey: string | undefined }
  | {
      readonly kind: "here";
      /** The program `vllm`, by its path or a name on PATH. */
      readonly program: string;
      /** Said after those of the manifest. */
      readonly args: readonly string[];
      readonly environment: Readonly<Record<string, string>>;
      /** Of the loopback, where vLLM listens; a free one is taken when undefined. */
      readonly port: number | undefined;
      /** Where the tier gives vLLM's metrics to others; nowhere when undefined. */
      readonly metricsPort?: number | undefined;
      /** Drawn when undefined. */
      readonly apiKey: string | undefined;
    };

/** A model that vLLM serves, as an administrator mounts it. */
export interface GeneratorSettings {
  /** Has `manifest.json`. */
  readonly folder: string;
  readonly server: ServerSettings;
  /** How long a start of vLLM may take. */
  readonly startSeconds: number;
  /** How long vLLM may write nothing when it is asked to, until it is held for hung. */
  readonly hangSeconds: number;
  /** Longest wait for how long the words are, once all of the speech is there: it has no word times then. 500 unless given. */
  readonly timesWithinMs?: number;
  /** Streams at once; measured when undefined. */
  readonly capacity: number | undefined;
  /** Of every phrase; drawn by vLLM when undefined. */
  readonly seed: number | undefined;
  readonly codec: {
    /** Of ONNX Runtime, in order of preference: `cuda`, `cpu`. */
    readonly providers: readonly string[];
    /** Processes that decode; one a core, or one on a GPU, when undefined. */
    readonly processes: number | undefined;
  };
}
