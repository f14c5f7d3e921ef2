import type { FastifyBaseLogger } from "fastify";
import type { Voice } from "../../config/contract/voices.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { Admission } from "./admission.ts";
import type { LicenseGate } from "./license.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { Metrics } from "./metrics.ts";
import type { Models } from "./models.ts";
import type { Prober } from "./prober.ts";
import type { Directory } from "./replicas.ts";

export interface ApiLimits {
  readonly bodyBytes: number;
  /** Of audio, in one JSON answer. */
  readonly jsonAudioBytes: number;
  readonly headerBytes: number;
  /** Longest time that a request may take to arrive. */
  readonly requestTimeoutMs: number;
  /** Silence in an event stream before a comment tells that it lives. */
  readonly heartbeatMs: number;
}

export const defaultLimits: ApiLimits = {
  bodyBytes: 16 * 1024 * 1024,
  jsonAudioBytes: 64 * 1024 * 1024,
  headerBytes: 16 * 1024,
  requestTimeoutMs: 60_000,
  heartbeatMs: 10_000,
};

/** All that the routes need, made elsewhere. */
export interface ApiParts {
  readonly log: FastifyBaseLogger;
  readonly limits: ApiLimits;
  readonly voices: readonly Voice[];
  readonly keys: KeyStore;
  readonly models: Models;
  readonly directory: Directory;
  readonly prober: Prober;
  readonly license: LicenseGate;
  readonly admission: Admission;
  readonly metrics: Metrics;
  readonly lifecycle: Lifecycle;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}
