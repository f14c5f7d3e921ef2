import { type DestinationStream, pino } from "pino";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { countOnly, createQuotas, type Quotas, windowSeconds } from "../api/access/quotas.ts";
import { connectSharedLimits } from "../api/access/shared-limits.ts";
import { createStreamLimiter } from "../api/access/stream-limiter.ts";
import { watchConnections } from "../api/lifecycle/connections.ts";
import { createLifecycle, drain } from "../api/lifecycle/drain.ts";
import { watchForClose } from "../api/lifecycle/graceful-close.ts";
import { createOpenSockets } from "../api/lifecycle/open-sockets.ts";
import { warmUpCodecs } from "../api/lifecycle/warm-up.ts";
import { createMetrics, type Metrics } from "../api/observability/metrics.ts";
import { defaultLimits } from "../api/request/limits.ts";
import { createMemoryBudget } from "../api/request/memory-budget.ts";
import { defaultSocketOptions } from "../api/request/socket-options.ts";
import type { ApiContext } from "../api/services/api-context.ts";
import { createModelClient, type ModelClientOptions } from "../api/upstream/model-client.ts";
import { createReplicaSelector } from "../api/upstream/replicas.ts";
import { createRequestHold, defaultHoldLimits } from "../api/upstream/request-hold.ts";
import { openDashboard } from "../dashboard/open.ts";
import type { DashboardContext } from "../dashboard/pages/dashboard-context.ts";
import { createSentenceSetting } from "../store/team-settings.ts";
import { startTracing } from "../tracing/start.ts";
import { buildApp } from "./api-app.ts";
import { type Files, openFiles } from "./api-files.ts";
import { joinKeys } from "./api-keys.ts";
import { openLicense } from "./api-license.ts";
import { type ApiSettings, type ApiTiming, defaultTiming } from "./api-settings.ts";
import { openStores, type Stores } from "./api-stores.ts";
import { openDirectory, openUpstream, type Upstream } from "./api-upstream.ts";
import { weakSettings } from "./weak-settings.ts";

/** Requests that one API process speaks at once; far above what its models take. */
const places = 1024;

export interface RunningApi {
  readonly url: string;
  /** Drains, then frees everything. */
  stop(): Promise<void>;
}

/** Dependencies that tests replace. */
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
  const timing = { ...defaultTiming, ...settings.timing };
  const limits = { ...defaultLimits, ...settings.limits };
  const now = () => clock.nowMs();
  const tracing = await startTracing(settings.tracing, log, clock);
  const directory = openDirectory(settings.routing, { log, clock, random });
  const files = openFiles(settings, log, clock);
  const { license, check } = await openLicense(settings, {
    files,
    directory,
    intervalMs: timing.licenseIntervalMs,
    onResult: (result) => metrics.licenseChecked(result),
    clock,
    random,
    log,
  });
  const upstream = openUpstream(settings, timing, directory, clock);
  const { prober, load } = upstream;
  const checksLicense = check !== undefined;
  const sockets = createOpenSockets(clock);
  const metrics = createMetrics({ capacity: places, license, checksLicense, prober, load, sockets, now });
  const models = openModels(settings, timing, { upstream, files, metrics, clock, random });
  await check?.start();
  const stores = await openStores(settings, { metrics, log, clock });
  const quotas = await openQuotas(settings, files, metrics, log, clock);
  const lifecycle = createLifecycle();
  const services: ApiContext = {
    ...{ log, limits, clock, now, metrics, tracing, lifecycle, license, models, quotas },
    ...{ directory, prober, load, voices: upstream.voices },
    ...{ usage: stores.usage, lexicon: stores.lexicon, oovs: stores.oovs, oovRecorder: stores.oovRecorder },
    trustedProxies: settings.trustedProxies ?? [],
    memory: createMemoryBudget(limits.heldBytes, limits.heldWaitMs, clock),
    sockets: { open: sockets, ...defaultSocketOptions, ...settings.sockets },
    ...keysOf(settings, files, stores, log),
    licenseAnswer: () => check?.answer(),
    internalToken: () => files.token?.current(),
    streamLimiter: createStreamLimiter(places),
  };
  const app = buildApp(services, openDashboardOf(settings, stores, now));
  const connections = watchConnections(app.server, {
    stallMs: limits.stallMs,
    onStall: () => log.info({ stallMs: limits.stallMs }, "a reader that read nothing was cut"),
    clock,
  });
  const gracefulClose = watchForClose(app.server, clock);
  const close = async () => {
    connections.close();
    sockets.close();
    license.close();
    for (const file of Object.values(files)) file?.close();
    await Promise.all([upstream.close(), check?.close(), models.close(), quotas.close(), tracing.stop()]);
    await stores.close();
  };
  const stop = async () => {
    await drain(app, lifecycle, {
      keepAliveGraceMs: timing.keepAliveGraceMs,
      idleCloseMs: timing.idleCloseMs,
      drainMs: settings.drainSeconds * 1000,
      connections: gracefulClose,
      endSockets: () => sockets.drain(),
      cut: () => connections.resetAll(),
      clock,
    });
    await close();
  };
  try {
    await warmUpCodecs();
    return { url: await app.listen({ host: settings.host, port: settings.port }), stop };
  } catch (error) {
    await close();
    throw error;
  }
}

interface ModelParts extends Pick<ModelClientOptions, "clock"> {
  readonly upstream: Upstream;
  readonly files: Files;
  readonly metrics: Pick<Metrics, "poolStream">;
  readonly random: () => number;
}

function openModels(
  settings: ApiSettings,
  timing: ApiTiming,
  { upstream: { directory, load, voices }, files, metrics, clock, random }: ModelParts,
) {
  return createModelClient({
    load,
    waitingRoom: createRequestHold(directory, load, settings.waiting ?? defaultHoldLimits, clock),
    replicasWithout: voices.replicasWithout,
    chooser: createReplicaSelector(directory, random, () => clock.monotonicMs()),
    onPoolStream: (facts) => metrics.poolStream(facts),
    token: () => files.token?.current(),
    clock,
    ...timing,
  });
}

/** The keys by which requests are let in, and how keys are changed. */
function keysOf(
  settings: ApiSettings,
  files: Files,
  { followedKeys, keyBook }: Stores,
  log: Log,
): Pick<ApiContext, "keys" | "keyLimits" | "hasKeys" | "keyBook"> {
  const hasOthers = () => Boolean(settings.apiKey) || files.keys?.current() !== undefined;
  return {
    keys: joinKeys(settings, files.keys, followedKeys, log),
    keyLimits: settings.keyLimits,
    hasKeys: () => !followedKeys || followedKeys.isRead() || hasOthers(),
    keyBook,
  };
}

/** Undefined where the dashboard is off. */
function openDashboardOf(
  { dashboard }: ApiSettings,
  { database, lexicon, lexiconTable }: Stores,
  now: () => number,
): DashboardContext | undefined {
  if (!dashboard || !lexicon) return undefined;
  const sentences = createSentenceSetting(database, now);
  return openDashboard(dashboard, database, { lexicon, table: lexiconTable, sentences }, now);
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
