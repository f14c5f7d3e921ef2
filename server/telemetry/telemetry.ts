/** The metrics of streams that a model tier exports by OpenTelemetry (specification 6.3). */
export interface Telemetry {
  /** Counts an invocation. */
  invoked(): void;
  /** Counts an admitted stream as running until `ended` is called. */
  began(): void;
  ended(): void;
  /**
   * Records the first audio of a stream.
   * @param latencyMs the milliseconds since the invocation arrived, including the time in the queue.
   */
  firstAudio(latencyMs: number): void;
  /** Records the duration of the audio of a stream that ended, successfully or not. */
  generated(audioSeconds: number): void;
  /** Exports the remaining values in bounded time, and stops. */
  stop(): Promise<void>;
}

/** The implementation for a server without telemetry. */
export const noTelemetry: Telemetry = {
  invoked: () => undefined,
  began: () => undefined,
  ended: () => undefined,
  firstAudio: () => undefined,
  generated: () => undefined,
  stop: async () => undefined,
};
