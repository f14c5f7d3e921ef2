import { type DestinationStream, pino } from "pino";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { watchConnections } from "../api/lifecycle/connections.ts";
import { drain } from "../api/lifecycle/drain.ts";
import { watchForClose } from "../api/lifecycle/graceful-close.ts";
import { checkCertificate, openTlsListener } from "../api/lifecycle/tls-listener.ts";
import { warmUpCodecs } from "../api/lifecycle/warm-up.ts";
import { SendQueueReader } from "../http/send-queues.ts";
import { createApp } from "./api-app.ts";
import { addRoutes } from "./api-routes.ts";
import { openServices } from "./api-services.ts";
import type { ApiSettings } from "./api-settings.ts";
import { weakSettings } from "./weak-settings.ts";

export interface RunningApi {
  readonly url: string;
  /** The URL of the TLS listener. The value is undefined if the server has no TLS listener. */
  readonly tlsUrl: string | undefined;
  /** Drains the server, and then frees all resources. */
  stop(): Promise<void>;
}

/** The dependencies that tests replace. */
export interface ApiEnvironment {
  readonly clock?: Clock;
  /** Returns a random number from 0 to below 1. */
  readonly random?: () => number;
  /** The destination of the log. The default is standard output. */
  readonly logTo?: DestinationStream;
}

/**
 * Starts the API tier.
 * @throws Error if a file is invalid, or the port is in use.
 */
export async function startApiTier(
  settings: ApiSettings,
  { clock = systemClock, random = Math.random, logTo }: ApiEnvironment = {},
): Promise<RunningApi> {
  const log = pino({ level: settings.logLevel, base: { tier: "api" } }, logTo);
  for (const warning of weakSettings(settings)) log.warn({}, warning);
  const { tls } = settings;
  if (tls) checkCertificate(tls); // An error of this check leaves no resource open.
  const services = await openServices(settings, { log, clock, random });
  const { timing, lifecycle, openSockets } = services;
  const { stallMs } = services.limits;
  const app = createApp({ ...services, log, usage: services.stores.usage }, settings.trustedProxies);
  addRoutes(app, settings, services);
  const queues = new SendQueueReader(log);
  const connections = watchConnections(app.server, {
    stallMs,
    onStall: () => log.info({ stallMs }, "a connection was closed because its client read no data"),
    queues,
    clock,
  });
  const secure = tls && openTlsListener(tls, app.server, { log, clock });
  const listeners = secure ? [secure.server] : [];
  const gracefulClose = watchForClose(app.server, queues, clock, listeners);
  const close = async () => {
    connections.close();
    secure?.close();
    await services.close();
  };
  const stop = async () => {
    await drain(app, lifecycle, {
      keepAliveGraceMs: timing.keepAliveGraceMs,
      idleCloseMs: timing.idleCloseMs,
      drainMs: settings.drainSeconds * 1000,
      ...{ connections: gracefulClose, queues, listeners },
      endSockets: () => openSockets.drain(),
      cut: () => connections.resetAll(),
      clock,
    });
    await close();
  };
  try {
    await warmUpCodecs();
    const tlsUrl = await secure?.listen(settings.host);
    return { url: await app.listen({ host: settings.host, port: settings.port }), tlsUrl, stop };
  } catch (error) {
    await close();
    throw error;
  }
}
