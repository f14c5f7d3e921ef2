import type { FastifyBaseLogger } from "fastify";
import type { Clock } from "../../../lib/clock.ts";
import type { CachedLexicon } from "../../store/cached-lexicon.ts";
import type { KeyLimits } from "../../store/keys/key.ts";
import type { KeyManager } from "../../store/keys/key-manager.ts";
import type { KeyStore } from "../../store/keys/key-store.ts";
import type { KeyTableUser } from "../../store/keys/key-table.ts";
import type { OovStore } from "../../store/oov-store.ts";
import type { UsageRecorder } from "../../store/usage.ts";
import type { Tracing } from "../../tracing/span.ts";
import type { LicenseGate } from "../access/license-gate.ts";
import type { Quotas } from "../access/quotas.ts";
import type { StreamLimiter } from "../access/stream-limiter.ts";
import type { Lifecycle } from "../lifecycle/drain.ts";
import type { OpenSockets } from "../lifecycle/open-sockets.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { OovRecorder } from "../oovs/recorder.ts";
import type { ApiLimits } from "../request/limits.ts";
import type { MemoryBudget } from "../request/memory-budget.ts";
import type { SocketOptions } from "../request/socket-options.ts";
import type { LoadTracker } from "../upstream/load-tracker.ts";
import type { ModelClient } from "../upstream/model-client.ts";
import type { Prober } from "../upstream/prober.ts";
import type { ReplicaDirectory } from "../upstream/replicas.ts";
import type { VoiceDirectory } from "../upstream/voice-directory.ts";

/** Everything that the routes need, injected by the start-up. */
export interface ApiContext {
  readonly log: FastifyBaseLogger;
  readonly limits: ApiLimits;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[];
  readonly voices: VoiceDirectory;
  readonly keys: KeyStore;
  /** Limits of keys without limits of their own. */
  readonly keyLimits: KeyLimits;
  /** Whether API keys are available. False if they are in a database only that was never read. */
  readonly hasKeys: () => boolean;
  /** Undefined without a database: keys are managed elsewhere. */
  readonly keyBook: ((user: KeyTableUser) => KeyManager) | undefined;
  /** Undefined without a database. */
  readonly usage: UsageRecorder | undefined;
  /** The teams' lexicons. Undefined without a database. */
  readonly lexicon: CachedLexicon | undefined;
  readonly quotas: Quotas;
  readonly oovs: OovStore;
  readonly oovRecorder: OovRecorder;
  readonly models: ModelClient;
  readonly load: LoadTracker;
  /** The issuer's last response, as signed. */
  readonly licenseAnswer: () => string | undefined;
  /** The token with which the operator reads the load. Undefined while there is none. */
  readonly internalToken: () => string | undefined;
  readonly directory: ReplicaDirectory;
  readonly prober: Prober;
  readonly license: LicenseGate;
  readonly streamLimiter: StreamLimiter;
  readonly memory: MemoryBudget;
  readonly sockets: SocketOptions & { readonly open: OpenSockets };
  readonly metrics: Metrics;
  readonly tracing: Tracing;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}
