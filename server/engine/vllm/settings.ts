/** The settings of vLLM: a server elsewhere, or a child process. */
export type ServerSettings =
  | { readonly kind: "elsewhere"; readonly url: string; readonly apiKey: string | undefined }
  | {
      readonly kind: "here";
      /** The program `vllm`: a path, or a name on PATH. */
      readonly program: string;
      /** Arguments that follow the arguments of the manifest. */
      readonly args: readonly string[];
      readonly environment: Readonly<Record<string, string>>;
      /** The port of vLLM on the loopback address. By default, vLLM uses a free port. */
      readonly port: number | undefined;
      /**
       * The port at which the model tier serves vLLM's metrics. If the port is undefined, the metrics are not
       * served.
       */
      readonly metricsPort?: number | undefined;
      /** The API key of vLLM. The default is a random key. */
      readonly apiKey: string | undefined;
    };

/** A mounted model that vLLM serves. */
export interface GeneratorSettings {
  /** The folder of the model, which contains `manifest.json`. */
  readonly folder: string;
  readonly server: ServerSettings;
  /** The time limit of a start of vLLM. */
  readonly startSeconds: number;
  /** The time without output during a request after which vLLM counts as hung. */
  readonly hangSeconds: number;
  /**
   * The longest wait, after the end of the speech, for the durations of words. After this time, the server
   * sends the speech without word timestamps. The default is 500.
   */
  readonly timesWithinMs?: number;
  /** The number of concurrent streams. By default, the server measures this number when it starts. */
  readonly capacity: number | undefined;
  /** The seed of every phrase. By default, vLLM selects the seeds. */
  readonly seed: number | undefined;
  readonly codec: {
    /** The execution providers of ONNX Runtime in order of preference, for example `cuda` and `cpu`. */
    readonly providers: readonly string[];
    /** The number of decoder processes. The default is one for each core, or one on a GPU. */
    readonly processes: number | undefined;
  };
}
