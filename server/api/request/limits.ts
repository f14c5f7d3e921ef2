export interface ApiLimits {
  readonly bodyBytes: number;
  /** Limit for all bodies and JSON responses that are held at once. */
  readonly heldBytes: number;
  /** Longest wait for memory. */
  readonly heldWaitMs: number;
  /** Limit for the audio of one JSON response. */
  readonly jsonAudioBytes: number;
  /** Highest sampling rate in Hz of a self-hosted arcana. */
  readonly highestRate: number;
  readonly headerBytes: number;
  /** Longest time for a request to arrive. */
  readonly requestTimeoutMs: number;
  /** Longest time for which a client may read nothing while data waits for it. */
  readonly stallMs: number;
  /** Silence in an event stream before a comment is sent to keep the connection. */
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
