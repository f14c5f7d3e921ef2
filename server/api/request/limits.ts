export interface ApiLimits {
  readonly bodyBytes: number;
  /** Of bodies and JSON answers that are held at once. */
  readonly heldBytes: number;
  /** Longest wait for some of it. */
  readonly heldWaitMs: number;
  /** Of audio, in one JSON answer. */
  readonly jsonAudioBytes: number;
  /** Hz, of a self-hosted arcana. */
  readonly highestRate: number;
  readonly headerBytes: number;
  /** Longest time that a request may take to arrive. */
  readonly requestTimeoutMs: number;
  /** Longest time that a reader may read nothing of what waits for it. */
  readonly stallMs: number;
  /** Silence in an event stream before a comment tells that it lives. */
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
