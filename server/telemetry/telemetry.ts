/** The metrics of streams that a model tier sends by OpenTelemetry (specification 6.3). */
export interface Telemetry {
  /** A request to speak has come. */
  invoked(): void;
  /** A stream was admitted; `ended` is called when it ends. */
  began(): void;
  ended(): void;
  /** A stream has its first audio. @param latencyMs since the request arrived, with the time in the queue. */
  firstAudio(latencyMs: number): void;
  /** A stream ended, successfully or not. */
  generated(audioSeconds: number): void;
  /** Sends what is not sent yet, in bounded time, and stops. */
  stop(): Promise<void>;
}

/** Used where telemetry is off: costs nothing. */
export const noTelemetry: Telemetry = {
  invoked: () => undefined,
  began: () => undefined,
  ended: () => undefined,
  firstAudio: () => undefined,
  generated: () => undefined,
  stop: async () => undefined,
};
