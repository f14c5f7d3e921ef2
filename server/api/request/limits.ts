export interface ApiLimits {
  readonly bodyBytes: number;
  /** The limit for the total size of all bodies and JSON responses in memory. */
  readonly heldBytes: number;
  /** The longest wait of a request for memory. */
  readonly heldWaitMs: number;
  /** The limit for the audio of one JSON response. */
  readonly jsonAudioBytes: number;
  /** The highest sampling rate in Hz of a self-hosted arcana. */
  readonly highestRate: number;
  readonly headerBytes: number;
  /** The longest time for a request to arrive. */
  readonly requestTimeoutMs: number;
  /** The longest time without progress while data waits for the client. */
  readonly stallMs: number;
  /**
   * The time without an event after which the server sends a comment, because proxies close silent streams.
   */
  readonly heartbeatMs: number;
}

export const defaultLimits: ApiLimits = {
  bodyBytes: 16 * 1024 * 1024,
  heldBytes: 256 * 1024 * 1024,
  heldWaitMs: 5_000,
  jsonAudioBytes: 64 * 1024 * 1024,
  highestRate: 384_000,
  headerBytes: 16 * 1024,
  requestTimeoutMs: 60_000,
  stallMs: 60_000,
  heartbeatMs: 10_000,
};
