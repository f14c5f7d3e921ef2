/** What a model tier tells of its streams by OpenTelemetry (specification 6.3). */
export interface Telemetry {
  /** A request to speak has come. */
  invoked(): void;
  /** A stream has its place; whoever called says when it gives it back. */
  began(): void;
  ended(): void;
  /** The first audio of a stream is there. @param latencyMs since its request came, waiting included. */
  firstAudio(latencyMs: number): void;
  /** A stream is over, however it ended. */
  generated(audioSeconds: number): void;
  /** Sends what is not sent yet, in bounded time, and stops. */
  stop(): Promise<void>;
}

/** Where nobody is told: costs nothing. */
export const noTelemetry: Telemetry = {
  invoked: () => undefined,
  began: () => undefined,
  ended: () => undefined,
  firstAudio: () => undefined,
  generated: () => undefined,
  stop: async () => undefined,
};
