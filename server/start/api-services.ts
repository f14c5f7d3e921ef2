import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { countOnly, createQuotas, type Quotas, windowSeconds } from "../api/access/quotas.ts";
import { connectSharedLimits } from "../api/access/shared-limits.ts";
import { createStreamLimiter } from "../api/access/stream-limiter.ts";
import { createLifecycle } from "../api/lifecycle/drain.ts";
import { createOpenSockets } from "../api/lifecycle/open-sockets.ts";
import { createMetrics, type Metrics } from "../api/observability/metrics.ts";
import { defaultLimits } from "../api/request/limits.ts";
import { Synthesizer } from "../api/synthesis/synthesizer.ts";
import { createModelClient } from "../api/upstream/model-client.ts";
import { createReplicaSelector } from "../api/upstream/replicas.ts";
import { createRequestHold, defaultHoldLimits } from "../api/upstream/request-hold.ts";
import { startTracing } from "../tracing/start.ts";
import { type Files, openFiles } from "./api-files.ts";
import { joinKeys } from "./api-keys.ts";
import { openLicense } from "./api-license.ts";
import { type ApiSettings, defaultTiming, type StartEnvironment } from "./api-settings.ts";
import { openStores } from "./api-stores.ts";
import { openDirectory, openUpstream, type Upstream } from "./api-upstream.ts";

/**
 * The highest number of concurrent streams of one API process. The models usually reach their own limits
 * earlier.
 */
const mostStreams = 1024;

/** The services of one API process. Each route receives only the services that it uses. */
export type ApiServices = Awaited<ReturnType<typeof openServices>>;

/**
 * Opens files, stores and connections.
 * @throws Error if a file is invalid.
 */
export async function openServices(settings: ApiSettings, environment: StartEnvironment) {
  const { log, clock, random } = environment;
  const timing = { ...defaultTiming, ...settings.timing };
  const limits = { ...defaultLimits, ...settings.limits };
  const lifecycle = createLifecycle();
  const tracing = await startTracing(settings.tracing, log, clock);
  const directory = openDirectory(settings.routing, environment);
  const files = openFiles(settings, log, clock);
  const { license, check } = await openLicense(settings, {
    ...{ files, directory, clock, random, log },
    intervalMs: timing.licenseIntervalMs,
    onResult: (result) => metrics.licenseChecked(result),
  });
  const upstream = openUpstream(settings, timing, directory, clock);
  const openSockets = createOpenSockets(clock);
  const metrics = createMetrics({
    capacity: mostStreams,
    license,
    checksLicense: check !== undefined,
    prober: upstream.prober,
    load: upstream.load,
    sockets: openSockets,
    now: () => clock.nowMs(),
  });
  const models = openModels(settings, upstream, files, metrics, environment);
  await check?.start();
  const stores = await openStores(settings, { metrics, log, clock });
  const quotas = await openQuotas(settings, files, metrics, log, clock);
  const synthesizer = new Synthesizer({
    ...{ license, quotas, models, metrics, clock },
    streamLimiter: createStreamLimiter(mostStreams),
    lexicon: stores.lexicon,
    oovRecorder: stores.oovRecorder,
  });
  const close = async () => {
    openSockets.close();
    license.close();
    for (const file of Object.values(files)) file?.close();
    await Promise.all([upstream.close(), check?.close(), models.close(), quotas.close(), tracing.stop()]);
    await stores.close();
  };
  return {
    ...{ log, clock, timing, limits, lifecycle, tracing, files, license, check, upstream, openSockets },
    ...{ metrics, stores, quotas, synthesizer, close },
    ...joinKeys(settings, files.keys, stores.followedKeys, log),
  };
}

function openModels(
  settings: ApiSettings,
  { directory, load, voices }: Upstream,
  files: Files,
  metrics: Metrics,
  { clock, random }: StartEnvironment,
) {
  return createModelClient({
    ...defaultTiming,
    ...settings.timing,
    load,
    requestHold: createRequestHold(directory, load, settings.waiting ?? defaultHoldLimits, clock),
    replicasWithout: voices.replicasWithout,
    chooser: createReplicaSelector(directory, random, () => clock.monotonicMs()),
    onPoolStream: (facts) => metrics.poolStream(facts),
    token: () => files.token?.current(),
    clock,
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
