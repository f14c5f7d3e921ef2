import type { FastifyBaseLogger } from "fastify";
import type { Clock } from "../clock.ts";
import type { DashboardParts } from "../dashboard/parts.ts";
import type { FollowedLexicon } from "../store/followed-lexicon.ts";
import type { KeyLimits } from "../store/key.ts";
import type { KeyBook } from "../store/key-book.ts";
import type { KeyStore } from "../store/key-store.ts";
import type { KeyTableUser } from "../store/key-table.ts";
import type { OovStore } from "../store/oov-store.ts";
import type { UsageRecorder } from "../store/usage.ts";
import type { Tracing } from "../tracing/span.ts";
import type { Admission } from "./admission.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { LicenseGate } from "./license.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { LoadBook } from "./load-book.ts";
import type { Metrics } from "./metrics.ts";
import type { Models } from "./models.ts";
import type { OovRecorder } from "./oovs/recorder.ts";
import type { Prober } from "./prober.ts";
import type { Quotas } from "./quota/quotas.ts";
import type { Directory } from "./replicas.ts";
import type { VoiceDirectory } from "./voice-directory.ts";

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

/** All that the routes need, made elsewhere. */
export interface ApiParts {
  readonly log: FastifyBaseLogger;
  readonly limits: ApiLimits;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  readonly voices: VoiceDirectory;
  readonly keys: KeyStore;
  /** Of keys that have none of their own. */
  readonly keyLimits: KeyLimits;
  /** Whether there are keys to let callers in by; false where they are in a database alone that was never read. */
  readonly hasKeys: () => boolean;
  /** Undefined without a database: keys are changed elsewhere. */
  readonly keyBook: ((user: KeyTableUser) => KeyBook) | undefined;
  /** Undefined without a database. */
  readonly usage: UsageRecorder | undefined;
  /** How teams say words; undefined without a database. */
  readonly lexicon: FollowedLexicon | undefined;
  /** Undefined where it is off. */
  readonly dashboard: DashboardParts | undefined;
  readonly quotas: Quotas;
  readonly oovs: OovStore;
  readonly oovRecorder: OovRecorder;
  readonly models: Models;
  readonly load: LoadBook;
  /** What the license's issuer last said, as it was signed. */
  readonly licenseAnswer: () => string | undefined;
  /** What the operator shows to read the load; undefined while there is none. */
  readonly internalToken: () => string | undefined;
  readonly directory: Directory;
  readonly prober: Prober;
  readonly license: LicenseGate;
  readonly admission: Admission;
  readonly memory: ByteBudget;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}
