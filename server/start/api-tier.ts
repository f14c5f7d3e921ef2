import { readFileSync } from "node:fs";
import { type DestinationStream, pino } from "pino";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createIssuerClient } from "../api/access/issuer-client.ts";
import { type CheckOptions, createLicenseCheck, type LicenseCheck } from "../api/access/license-check.ts";
import { createLicenseGate, type LicenseGate } from "../api/access/license-gate.ts";
import { countOnly, createQuotas, type Quotas, windowSeconds } from "../api/access/quotas.ts";
import { connectSharedLimits } from "../api/access/shared-limits.ts";
import { createStreamLimiter } from "../api/access/stream-limiter.ts";
import { watchConnections } from "../api/lifecycle/connections.ts";
import { createLifecycle, drain } from "../api/lifecycle/drain.ts";
import { watchForClose } from "../api/lifecycle/graceful-close.ts";
import { warmUpCodecs } from "../api/lifecycle/warm-up.ts";
import { createMetrics, type Metrics } from "../api/observability/metrics.ts";
import { waitInMemory } from "../api/oovs/memory.ts";
import { createOovRecorder, type OovRecorder } from "../api/oovs/recorder.ts";
import { openSpool } from "../api/oovs/spool.ts";
import { defaultLimits } from "../api/request/limits.ts";
import { createMemoryBudget } from "../api/request/memory-budget.ts";
import type { ApiContext } from "../api/services/api-context.ts";
import { createClusterDirectory } from "../api/upstream/kubernetes/directory.ts";
import { createLoadTracker } from "../api/upstream/load-tracker.ts";
import { createModelClient } from "../api/upstream/model-client.ts";
import { createProber } from "../api/upstream/prober.ts";
import { createReplicaSelector, type ReplicaDirectory } from "../api/upstream/replicas.ts";
import { createRequestHold, defaultHoldLimits } from "../api/upstream/request-hold.ts";
import { createFileDirectory } from "../api/upstream/routing-file.ts";
import { createVoiceDirectory } from "../api/upstream/voice-directory.ts";
import { openDashboard } from "../dashboard/open.ts";
import { limitAudit } from "../store/audit-retention.ts";
import { type CachedLexicon, cacheLexicon } from "../store/cached-lexicon.ts";
import { type Database, openDatabase } from "../store/database/database.ts";
import { type KeyTableUser, openKeyTableBook } from "../store/keys/key-table.ts";
import { createLexiconTable, type LexiconTable } from "../store/lexicon.ts";
import { createOovStore, type OovStore } from "../store/oov-store.ts";
import { createSentenceSetting } from "../store/team-settings.ts";
import { recordUsage, type UsageRecorder } from "../store/usage.ts";
import { startTracing } from "../tracing/start.ts";
import { buildApp } from "./api-app.ts";
import { type Files, openFiles } from "./api-files.ts";
import { joinKeys, openKeys } from "./api-keys.ts";
import {
  type ApiSettings,
  defaultTiming,
  type LicenseCheckSettings,
  type RoutingSource,
} from "./api-settings.ts";
import { weakSettings } from "./weak-settings.ts";

/** Requests that one API process speaks at once; far above what its models take. */
const places = 1024;
/** Longest wait for the license's issuer. */
const issuerWithinMs = 10_000;

export interface RunningApi {
  readonly url: string;
  /** Drains, then frees everything. */
  stop(): Promise<void>;
}

/** What differs between a server and a test of it. */
export interface ApiEnvironment {
  readonly clock?: Clock;
  /** 0 to below 1. */
  readonly random?: () => number;
  /** Standard output unless given. */
  readonly logTo?: DestinationStream;
}

/**
 * Starts the public tier.
 * @throws Error when a file is wrong, or the port is taken.
 */
export async function startApiTier(
  settings: ApiSettings,
  { clock = systemClock, random = Math.random, logTo }: ApiEnvironment = {},
): Promise<RunningApi> {
  const log = pino({ level: settings.logLevel, base: { tier: "api" } }, logTo);
  for (const warning of weakSettings(settings)) log.warn({}, warning);
  const tracing = await startTracing(settings.tracing, log, clock);
  const timing = { ...defaultTiming, ...settings.timing };
  const now = () => clock.nowMs();
  const directory = createDirectory(settings.routing, { log, clock, random });
  const files = openFiles(settings, log, clock);
  const check = startLicenseCheck(settings.licenseCheck, {
    licenseId: () => license.verdict().claims?.jti,
    keys: () => files.licenseKeys?.current(),
    kept: () => directory.table()?.licenseCheck,
    onNews: () => judgeAgain(),
    onResult: (result) => metrics.licenseChecked(result),
    clock,
    random,
    log,
  });
  const license: LicenseGate = await createLicenseGate({
    check: () => check?.facts(),
    token: () => files.license?.current(),
    keys: () => files.licenseKeys?.current(),
    gracePeriodSeconds: settings.licenseGraceSeconds,
    failedAt: () => parseTime(directory.table()?.licenseFailedAt),
    lastLicense: () => directory.table()?.lastLicense,
    clock,
    intervalMs: timing.licenseIntervalMs,
    log,
  });
  const judgeAgain = () => {
    license.refresh().catch((error: unknown) => log.error({ err: error }, "the license could not be judged"));
  };
  for (const source of [directory, files.license, files.licenseKeys]) source?.onChange(judgeAgain);
  directory.onChange(() => void check?.adopt());
  const waiting = settings.waiting ?? defaultHoldLimits;
  const prober = createProber({
    directory,
    wakingMs: waiting.longestMs,
    intervalMs: timing.probeIntervalMs,
    timeoutMs: timing.probeTimeoutMs,
    clock,
  });
  const voices = createVoiceDirectory({
    own: settings.voices,
    directory,
    intervalMs: timing.voicesIntervalMs,
    timeoutMs: timing.probeTimeoutMs,
    clock,
  });
  const load = createLoadTracker(directory, () => clock.monotonicMs());
  const models = createModelClient({
    load,
    waitingRoom: createRequestHold(directory, load, waiting, clock),
    replicasWithout: voices.replicasWithout,
    chooser: createReplicaSelector(directory, random, () => clock.monotonicMs()),
    onPoolStream: (facts) => metrics.poolStream(facts),
    token: () => files.token?.current(),
    clock,
    ...timing,
  });
  const lifecycle = createLifecycle();
  const metrics = createMetrics({
    capacity: places,
    license,
    checksLicense: check !== undefined,
    prober,
    load,
    now,
  });
  await check?.start();
  const database = openDatabase(settings.database ?? ":memory:", {
    passwordFile: settings.databasePasswordFile,
  });
  const followed = settings.database === undefined ? undefined : openKeys(database, settings, log, clock);
  await followed?.start();
  const hasDatabase = settings.database !== undefined;
  const usage = hasDatabase ? openUsage(database, log, clock) : undefined;
  const keyBook = (user: KeyTableUser) => openKeyTableBook(database, now, user);
  const lexiconTable = createLexiconTable(database, now);
  const lexicon = hasDatabase ? openLexicon(lexiconTable, log, clock) : undefined;
  await lexicon?.refresh();
  const oovs = createOovStore(database);
  const oovRecorder = await openOovRecorder({
    store: oovs,
    folder: settings.spoolFolder,
    keepsSentences: (team) => lexicon?.keepsSentences(team) ?? false,
    metrics,
    log,
    clock,
  });
  const quotas = await openQuotas(settings, files, metrics, log, clock);
  const limits = { ...defaultLimits, ...settings.limits };
  const dashboard =
    settings.dashboard &&
    lexicon &&
    openDashboard(
      settings.dashboard,
      database,
      { lexicon, table: lexiconTable, sentences: createSentenceSetting(database, now) },
      now,
    );
  const parts: ApiContext = {
    log,
    limits,
    trustedProxies: settings.trustedProxies ?? [],
    memory: createMemoryBudget(limits.heldBytes, limits.heldWaitMs, clock),
    voices,
    keys: joinKeys(settings, files.keys, followed, log),
    keyLimits: settings.keyLimits,
    hasKeys: () => !followed || followed.isRead() || hasOtherKeys(settings, files),
    keyBook: hasDatabase ? keyBook : undefined,
    usage,
    lexicon,
    quotas,
    oovs,
    oovRecorder,
    models,
    load,
    licenseAnswer: () => check?.answer(),
    internalToken: () => files.token?.current(),
    directory,
    prober,
    license,
    admission: createStreamLimiter(places),
    metrics,
    tracing,
    lifecycle,
    clock,
    now,
  };
  const app = buildApp(parts, dashboard);
  const auditDays = settings.dashboard?.auditDays;
  const stopForgetting =
    auditDays === undefined
      ? undefined
      : limitAudit({
          database,
          days: auditDays,
          clock,
          onTrouble: (err) =>
            log.error({ err }, "old changes cannot be forgotten; they stay until the next hour"),
        });
  const connections = watchConnections(app.server, {
    stallMs: limits.stallMs,
    onStall: () => log.info({ stallMs: limits.stallMs }, "a reader that read nothing was cut"),
    clock,
  });
  const gracefulClose = watchForClose(app.server, clock);
  const close = async () => {
    connections.close();
    lexicon?.close();
    license.close();
    directory.close();
    for (const file of Object.values(files)) file?.close();
    await Promise.all([
      prober.close(),
      voices.close(),
      check?.close(),
      models.close(),
      quotas.close(),
      followed?.close(),
      usage?.close(),
      oovRecorder.close(),
      tracing.stop(),
      stopForgetting?.(),
    ]);
    await database.close();
  };
  try {
    await warmUpCodecs();
    const url = await app.listen({ host: settings.host, port: settings.port });
    return {
      url,
      stop: async () => {
        await drain(app, lifecycle, {
          keepAliveGraceMs: timing.keepAliveGraceMs,
          idleCloseMs: timing.idleCloseMs,
          drainMs: settings.drainSeconds * 1000,
          connections: gracefulClose,
          cut: () => connections.resetAll(),
          clock,
        });
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function createDirectory(
  source: RoutingSource,
  environment: Required<Pick<ApiEnvironment, "clock" | "random">> & { readonly log: Log },
): ReplicaDirectory {
  return source.kind === "file"
    ? createFileDirectory(source.path, environment.log, environment.clock)
    : createClusterDirectory({ ...source, ...environment });
}

function startLicenseCheck(
  settings: LicenseCheckSettings | undefined,
  options: Omit<CheckOptions, "issuer" | "intervalSeconds">,
): LicenseCheck | undefined {
  if (settings === undefined) return undefined;
  const { endpoint, intervalSeconds, caFile } = settings;
  const authority = caFile === undefined ? undefined : readFileSync(caFile, "utf8");
  const issuer = createIssuerClient({
    endpoint,
    authority,
    withinMs: issuerWithinMs,
    clock: options.clock,
  });
  return createLicenseCheck({ ...options, issuer, intervalSeconds });
}

function hasOtherKeys({ apiKey }: ApiSettings, { keys }: Files): boolean {
  return Boolean(apiKey) || keys?.current() !== undefined;
}

function openUsage(database: Database, log: Log, clock: Clock): UsageRecorder {
  return recordUsage({
    database,
    clock,
    onTrouble: (error) => {
      if (error) log.error({ err: error }, "what API keys were used for cannot be written; it waits");
      else log.info({}, "what API keys were used for is written again");
    },
  });
}

function openLexicon(table: LexiconTable, log: Log, clock: Clock): CachedLexicon {
  return cacheLexicon({
    table,
    clock,
    onTrouble: (error) => {
      if (error) log.error({ err: error }, "lexicons cannot be read; those read last count");
      else log.info({}, "lexicons are read from the database");
    },
  });
}

interface OovParts {
  readonly store: OovStore;
  readonly folder: string | undefined;
  readonly keepsSentences: (team: string | undefined) => boolean;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
}

async function openOovRecorder({
  store,
  folder,
  keepsSentences,
  metrics,
  log,
  clock,
}: OovParts): Promise<OovRecorder> {
  const onDropped = (words: number) => metrics.oovsDropped(words);
  const onTrouble = (error: Error | undefined) => {
    if (error) log.error({ err: error, folder }, "the spool of words cannot be written; they wait in memory");
    else log.info({ folder }, "the spool of words is written again");
  };
  const onUnreadable = (error: Error, file: string) =>
    log.error({ err: error, file }, "a file of the spool of words cannot be read; it is left where it is");
  return createOovRecorder({
    store,
    keepsSentences,
    waiting:
      folder === undefined
        ? waitInMemory({ onDropped })
        : await openSpool({ folder, onDropped, onTrouble, onUnreadable }),
    clock,
    onTrouble: (error) => {
      if (error) log.error({ err: error }, "out-of-vocabulary words cannot be written; they wait");
      else log.info({}, "out-of-vocabulary words are written again");
    },
  });
}

async function openQuotas(
  { keyLimits, valkey }: ApiSettings,
  files: Files,
  metrics: Metrics,
  log: Log,
  clock: Clock,
): Promise<Quotas> {
  const shared =
    valkey &&
    (await connectSharedLimits({
      ...valkey,
      password: () => files.valkeyPassword?.current() ?? valkey.password,
      authority: files.valkeyCa?.current(),
      windowSeconds,
      points: countOnly,
      log,
      clock,
      onAway: (isAway) => metrics.sharedLimitsAway(isAway),
    }));
  return createQuotas({ defaults: keyLimits, shared });
}

function parseTime(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : time;
}
