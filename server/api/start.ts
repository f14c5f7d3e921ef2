import type { JSONWebKeySet } from "jose";
import { pino } from "pino";
import type { Voice } from "../../config/contract/voices.ts";
import { createFileKeyStore, parseKeyFile } from "../store/key-file.ts";
import { createSingleKeyStore, joinStores, type KeyEntry, type KeyStore } from "../store/key-store.ts";
import { type WatchedFile, watchFile } from "../watched-file.ts";
import { createAdmission } from "./admission.ts";
import { buildApp } from "./app.ts";
import type { ClusterAccess } from "./kubernetes/connection.ts";
import { createClusterDirectory } from "./kubernetes/directory.ts";
import { createLicenseGate } from "./license.ts";
import { createLifecycle, drain } from "./lifecycle.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { createModels } from "./models.ts";
import { type ApiLimits, defaultLimits } from "./parts.ts";
import { createProber } from "./prober.ts";
import { createReplicaChooser, type Directory } from "./replicas.ts";
import { createFileDirectory } from "./routing-file.ts";

export interface ApiSettings {
  readonly host: string;
  readonly port: number;
  readonly routing: RoutingSource;
  /** Folder with the file `token`. */
  readonly tokenFile: string | undefined;
  readonly licenseFile: string | undefined;
  readonly licenseKeysFile: string | undefined;
  readonly licenseGraceSeconds: number;
  readonly keysFile: string | undefined;
  /** One more key, in the clear. */
  readonly apiKey: string | undefined;
  readonly drainSeconds: number;
  readonly logLevel: string;
  readonly voices: readonly Voice[];
  readonly limits?: Partial<ApiLimits>;
  readonly timing?: Partial<ApiTiming>;
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
  readonly licenseIntervalMs: number;
  /** See `drain`. */
  readonly farewellMs: number;
}

const usualTiming: ApiTiming = {
  firstAudioTimeoutMs: 30_000,
  stallTimeoutMs: 30_000,
  probeIntervalMs: 3000,
  probeTimeoutMs: 2000,
  licenseIntervalMs: 30_000,
  farewellMs: 5_000,
};

/** Requests that one API process speaks at once; far above what its models take. */
const places = 1024;

export interface RunningApi {
  readonly url: string;
  /** Drains, then frees everything. */
  stop(): Promise<void>;
}

/**
 * Starts the public tier.
 * @throws Error when a file is wrong, or the port is taken.
 */
export async function startApiTier(settings: ApiSettings): Promise<RunningApi> {
  const log = pino({ level: settings.logLevel, base: { tier: "api" } });
  const timing = { ...usualTiming, ...settings.timing };
  const now = () => Date.now();
  const directory = createDirectory(settings.routing, log);
  const files = openFiles(settings, log);
  const license = await createLicenseGate({
    token: () => files.license?.current(),
    keys: () => files.licenseKeys?.current(),
    gracePeriodSeconds: settings.licenseGraceSeconds,
    failedAt: () => parseTime(directory.table()?.licenseFailedAt),
    now,
    intervalMs: timing.licenseIntervalMs,
    log,
  });
  const judgeAgain = () => {
    license.refresh().catch((error: unknown) => log.error({ err: error }, "the license could not be judged"));
  };
  for (const source of [directory, files.license, files.licenseKeys]) source?.onChange(judgeAgain);
  const prober = createProber({
    directory,
    intervalMs: timing.probeIntervalMs,
    timeoutMs: timing.probeTimeoutMs,
    now: () => performance.now(),
  });
  const models = createModels({
    chooser: createReplicaChooser(directory, Math.random),
    token: () => files.token?.current(),
    ...timing,
  });
  const lifecycle = createLifecycle();
  const app = buildApp({
    log,
    limits: { ...defaultLimits, ...settings.limits },
    voices: settings.voices,
    keys: createKeys(settings, files.keys, log),
    models,
    directory,
    prober,
    license,
    admission: createAdmission(places),
    metrics: createMetrics(),
    lifecycle,
    now,
  });
  const close = async () => {
    license.close();
    directory.close();
    for (const file of Object.values(files)) file?.close();
    await Promise.all([prober.close(), models.close()]);
  };
  try {
    const url = await app.listen({ host: settings.host, port: settings.port });
    return {
      url,
      stop: async () => {
        await drain(app, lifecycle, { farewellMs: timing.farewellMs, drainMs: settings.drainSeconds * 1000 });
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function createDirectory(source: RoutingSource, log: Log): Directory {
  return source.kind === "file"
    ? createFileDirectory(source.path, log)
    : createClusterDirectory({ ...source, log, random: Math.random });
}

interface Files {
  readonly token: WatchedFile<string> | undefined;
  readonly license: WatchedFile<string> | undefined;
  readonly licenseKeys: WatchedFile<JSONWebKeySet> | undefined;
  readonly keys: WatchedFile<readonly KeyEntry[]> | undefined;
}

function openFiles(settings: ApiSettings, log: Log): Files {
  const open = <Value>(
    path: string | undefined,
    parse: (text: string) => Value,
    absent: "keep" | "forget",
  ) =>
    path === undefined
      ? undefined
      : watchFile({
          path,
          parse,
          whenAbsent: absent,
          onError: (error) =>
            log.error({ err: error }, "a file changed for the worse; its last good state stays"),
        });
  return {
    token: open(settings.tokenFile, (text) => text.trim(), "keep"),
    license: open(settings.licenseFile, (text) => text.trim(), "forget"),
    licenseKeys: open(settings.licenseKeysFile, parseKeySet, "keep"),
    keys: open(settings.keysFile, parseKeyFile, "forget"),
  };
}

function parseKeySet(text: string): JSONWebKeySet {
  const set = JSON.parse(text) as Partial<JSONWebKeySet> | null;
  if (!Array.isArray(set?.keys)) throw new Error('license keys must be a JWKS, as {"keys": [...]}');
  return set as JSONWebKeySet;
}

function createKeys(
  { apiKey, keysFile }: ApiSettings,
  file: WatchedFile<readonly KeyEntry[]> | undefined,
  log: Log,
): KeyStore {
  if (!file && !apiKey) log.warn({}, "no API key is configured: every request will be answered 401");
  if (file && !file.current())
    log.warn({ keysFile }, "the keys file is not there yet; its keys count once it is");
  const stores: KeyStore[] = [];
  if (file) stores.push(createFileKeyStore(file));
  if (apiKey) stores.push(createSingleKeyStore(apiKey, "environment"));
  return joinStores(stores);
}

function parseTime(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : time;
}
