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
  /** The settings of the TLS listener. The value is undefined if the server has no TLS listener. */
  readonly tls?: TlsSettings | undefined;
  readonly routing: RoutingSource;
  /** The file with the internal token. */
  readonly tokenFile: string | undefined;
  readonly licenseFile: string | undefined;
  readonly licenseKeysFile: string | undefined;
  readonly licenseGraceSeconds: number;
  /** The settings of the online check. The value is undefined if the check is off. */
  readonly licenseCheck?: LicenseCheckSettings | undefined;
  readonly keysFile: string | undefined;
  /** An additional API key, in plain text. */
  readonly apiKey: string | undefined;
  /**
   * The database of API keys and out-of-vocabulary words: an SQLite file, or a `postgres://` URL. Without a
   * database, the words are kept in memory.
   */
  readonly database: string | undefined;
  /** The file with the password of PostgreSQL, which overrides the password in the URL. */
  readonly databasePasswordFile?: string | undefined;
  /**
   * A folder in which this process keeps out-of-vocabulary words until the database stores them. Without a
   * folder, the words wait in memory.
   */
  readonly spoolFolder?: string | undefined;
  /**
   * The settings of the dashboard, which needs a database. The value is undefined if the dashboard is off.
   */
  readonly dashboard?: DashboardSettings | undefined;
  /** The time for which the last known API keys stay valid while the database cannot be read. */
  readonly keysStaleSeconds: number;
  /** The default limits of API keys. */
  readonly keyLimits: KeyLimits;
  /**
   * The Valkey server that counts the requests and streams of API keys. Without a Valkey server, each API
   * process counts by itself.
   */
  readonly valkey: ValkeySettings | undefined;
  /**
   * The addresses and networks of proxies whose `X-Forwarded-For` is trusted. The default is an empty list.
   */
  readonly trustedProxies?: readonly string[];
  readonly drainSeconds: number;
  readonly logLevel: string;
  /** The settings of traces. The value is undefined if traces are off. */
  readonly tracing?: TracingSettings | undefined;
  readonly voices: readonly Voice[];
  readonly limits?: Partial<ApiLimits>;
  readonly sockets?: Partial<SocketOptions>;
  /** The limits of held requests. */
  readonly waiting?: HoldLimits;
  readonly timing?: Partial<ApiTiming>;
}

export interface LicenseCheckSettings {
  /** The URL of the license issuer, with https. */
  readonly endpoint: string;
  readonly intervalSeconds: number;
  /** The file with the PEM certificate of a private authority. */
  readonly caFile: string | undefined;
}

export interface ValkeySettings {
  /** The URL, such as `redis://host:6379`, or `rediss://host:6379` with TLS. */
  readonly url: string;
  readonly password: string | undefined;
  /** The file with the password, which overrides `password`. The file is read again when it changes. */
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
  /** `DrainOptions` explains this setting and the next setting. */
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

/** The dependencies of all parts of the tier. */
export interface StartEnvironment {
  readonly log: Log;
  readonly clock: Clock;
  /** Returns a random number from 0 to below 1, like `Math.random`. */
  readonly random: () => number;
}
