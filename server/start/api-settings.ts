import type { Voice } from "../../config/contract/voices.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { TlsSettings } from "../api/lifecycle/tls-listener.ts";
import type { ApiLimits } from "../api/request/limits.ts";
import type { SocketOptions } from "../api/request/socket-options.ts";
import type { ClusterAccess } from "../api/upstream/kubernetes/connection.ts";
import type { HoldLimits } from "../api/upstream/request-hold.ts";
import type { DashboardSettings } from "../dashboard/settings.ts";
import type { KeyLimits } from "../store/keys/key.ts";
import type { TracingSettings } from "../tracing/settings.ts";

/** The settings of the API tier. */
export interface ApiSettings {
  readonly host: string;
  readonly port: number;
  /** Undefined without a TLS listener. */
  readonly tls?: TlsSettings | undefined;
  readonly routing: RoutingSource;
  /** Folder with the file `token`. */
  readonly tokenFile: string | undefined;
  readonly licenseFile: string | undefined;
  readonly licenseKeysFile: string | undefined;
  readonly licenseGraceSeconds: number;
  /** Undefined if the online check is off. */
  readonly licenseCheck?: LicenseCheckSettings | undefined;
  readonly keysFile: string | undefined;
  /** An additional key, in plain text. */
  readonly apiKey: string | undefined;
  /** SQLite file or `postgres://` URL of keys and words. Without a database, words are kept in memory. */
  readonly database: string | undefined;
  /** The password of PostgreSQL. It overrides the URL's. */
  readonly databasePasswordFile?: string | undefined;
  /**
   * A folder of this process, where words wait until they are stored in the database. Without it, they wait
   * in memory.
   */
  readonly spoolFolder?: string | undefined;
  /** Undefined if the dashboard is off. It needs a database. */
  readonly dashboard?: DashboardSettings | undefined;
  /** How long keys of the database stay valid while it cannot be read. */
  readonly keysStaleSeconds: number;
  /** The limits of keys without limits of their own. */
  readonly keyLimits: KeyLimits;
  /** Undefined keeps the counts of keys in this process. */
  readonly valkey: ValkeySettings | undefined;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is trusted. By default there are none. */
  readonly trustedProxies?: readonly string[];
  readonly drainSeconds: number;
  readonly logLevel: string;
  /** Undefined while traces are off. */
  readonly tracing?: TracingSettings | undefined;
  readonly voices: readonly Voice[];
  readonly limits?: Partial<ApiLimits>;
  readonly sockets?: Partial<SocketOptions>;
  /** The limits of held requests. */
  readonly waiting?: HoldLimits;
  readonly timing?: Partial<ApiTiming>;
}

export interface LicenseCheckSettings {
  /** An https URL. */
  readonly endpoint: string;
  readonly intervalSeconds: number;
  /** PEM of a private certificate authority. */
  readonly caFile: string | undefined;
}

export interface ValkeySettings {
  /** `redis://host:6379`, or `rediss://` with TLS. */
  readonly url: string;
  readonly password: string | undefined;
  /** Overrides `password`. It is read again when it changes. */
  readonly passwordFile: string | undefined;
  readonly caFile: string | undefined;
  readonly prefix: string;
}

export type RoutingSource =
  | { readonly kind: "file"; readonly path: string }
  | {
      readonly kind: "cluster";
      readonly access: ClusterAccess;
      readonly namespace: string;
      readonly configMap: string;
    };

export interface ApiTiming {
  readonly firstAudioTimeoutMs: number;
  readonly stallTimeoutMs: number;
  readonly probeIntervalMs: number;
  readonly probeTimeoutMs: number;
  readonly voicesIntervalMs: number;
  readonly licenseIntervalMs: number;
  /** See `drain`. */
  readonly keepAliveGraceMs: number;
  readonly idleCloseMs: number;
}

export const defaultTiming: ApiTiming = {
  firstAudioTimeoutMs: 30_000,
  stallTimeoutMs: 30_000,
  probeIntervalMs: 3000,
  probeTimeoutMs: 2000,
  voicesIntervalMs: 2000,
  licenseIntervalMs: 30_000,
  keepAliveGraceMs: 5_000,
  idleCloseMs: 20_000,
};

/** Dependencies of all parts of the tier. */
export interface StartEnvironment {
  readonly log: Log;
  readonly clock: Clock;
  /** A random number from 0 to below 1, like `Math.random`. */
  readonly random: () => number;
}
