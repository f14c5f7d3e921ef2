import type { FastifyInstance } from "fastify";
import { type Guard, requireScope } from "../api/access/authenticate.ts";
import { limitRate } from "../api/access/rate-limit.ts";
import { refuseWhileDraining } from "../api/lifecycle/drain.ts";
import { bodyOptions } from "../api/request/body.ts";
import { defaultSocketOptions } from "../api/request/socket-options.ts";
import type { RequestRules } from "../api/request/speech-request.ts";
import { catalogueRoutes, openapiRoute } from "../api/routes/catalogue.ts";
import { healthRoutes } from "../api/routes/health.ts";
import { keyRoutes } from "../api/routes/keys.ts";
import { loadRoute } from "../api/routes/load.ts";
import { oovsRoute } from "../api/routes/oovs.ts";
import { openaiSpeechRoute } from "../api/routes/openai-speech.ts";
import { socketRoutes } from "../api/routes/sockets.ts";
import { speechRoute } from "../api/routes/speech.ts";
import { openDashboard } from "../dashboard/open.ts";
import { playgroundSocket } from "../dashboard/pages/playground-socket.ts";
import { addDashboard } from "../dashboard/routes.ts";
import type { Scope } from "../store/keys/key.ts";
import { createSentenceSetting } from "../store/team-settings.ts";
import type { ApiServices } from "./api-services.ts";
import type { ApiSettings } from "./api-settings.ts";

/** Registers each group of routes as a plugin, with the services that the routes use. */
export function addRoutes(app: FastifyInstance, settings: ApiSettings, services: ApiServices): void {
  const { log, clock, limits, files, license, check, upstream, metrics, stores } = services;
  const { keys, hasKeys, quotas, synthesizer, lifecycle, tracing } = services;
  const { directory, prober, load, voices } = upstream;
  const { usage, oovs, keyBook } = stores;
  const { keyLimits } = settings;
  const { highestRate } = limits;
  const now = () => clock.nowMs();
  const rules = (): RequestRules => ({
    profile: directory.table()?.profile ?? "self-hosted",
    voices: voices.all(),
    highestRate,
  });
  const speech = { rules, synthesizer, metrics, limits, clock };
  const sockets = { ...defaultSocketOptions, ...settings.sockets, open: services.openSockets };
  const dashboard = openDashboardOf(settings, services);
  const guard = (scope: Scope): Guard => [
    refuseWhileDraining(lifecycle),
    requireScope(keys, scope, now),
    limitRate(quotas),
  ];

  void app.register(speechRoute, { guard: guard("tts:write"), speech });
  void app.register(openaiSpeechRoute, { guard: guard("tts:write"), speech });
  void app.register(socketRoutes, {
    ...{ rules, sockets, keys, quotas, license, synthesizer, prober, lifecycle },
    ...{ log, metrics, tracing, usage, clock, now },
    session: dashboard && playgroundSocket(dashboard),
  });
  void app.register(healthRoutes, { license, prober, directory, lifecycle, hasKeys, metrics, now });
  void app.register(loadRoute, {
    ...{ load, lifecycle, clock },
    licenseAnswer: () => check?.answer(),
    internalToken: () => files.token?.current(),
  });
  void app.register(catalogueRoutes, { voices, prober });
  void app.register(openapiRoute, { highestRate });
  void app.register(oovsRoute, { guard: [requireScope(keys, "oov:read", now)], oovs });
  if (keyBook) void app.register(keyRoutes, { guard: guard("admin"), keyBook, keyLimits, now });
  if (dashboard) {
    const body = bodyOptions(limits, clock);
    addDashboard(app, dashboard, { speech, body, lifecycle, quotas, voices, prober, license, keyLimits });
  }
}

/** Opens the dashboard. Returns undefined if the dashboard is off. */
function openDashboardOf({ dashboard }: ApiSettings, { stores, clock }: ApiServices) {
  const { database, lexicon, lexiconTable } = stores;
  if (!dashboard || !lexicon) return undefined;
  const now = () => clock.nowMs();
  const sentences = createSentenceSetting(database, now);
  return openDashboard(dashboard, database, { lexicon, table: lexiconTable, sentences }, now);
}
