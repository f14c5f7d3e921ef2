import type { FastifyPluginAsync } from "fastify";
import { models } from "../../../config/contract/models.ts";
import { openapiDocument } from "../openapi/document.ts";
import type { RequestRules } from "../request/speech-request.ts";
import type { Prober } from "../upstream/prober.ts";
import type { DirectoryVoice, VoiceDirectory } from "../upstream/voice-directory.ts";

interface CatalogueOptions {
  readonly voices: Pick<VoiceDirectory, "all" | "mountedEngines">;
  readonly prober: Pick<Prober, "configured" | "isReachable">;
}

/**
 * Serves `GET /v1/voices` and `GET /v1/models`. These routes need no API key, because they reveal nothing
 * about users.
 */
export const catalogueRoutes: FastifyPluginAsync<CatalogueOptions> = async (app, { voices, prober }) => {
  app.get("/v1/voices", async () => ({
    voices: voices.all().map((voice) => ({
      id: voice.id,
      models: voice.models,
      language: voice.language,
      gender: voice.gender,
      license: voice.license,
      ...enginesOf(voice),
    })),
  }));
  app.get("/v1/models", async () => ({
    object: "list",
    data: prober.configured().map((id) => ({
      id,
      object: "model",
      owned_by: "svc-tts",
      reachable: prober.isReachable(id),
      maxTextLength: models[id].maxTextLength ?? null,
      defaultSamplingRate: models[id].defaultRate,
      defaultPcmSamplingRate: models[id].defaultPcmRate,
      engines: [...new Set(voices.all().flatMap(({ engines }) => engines[id] ?? []))],
      mountedEngines: voices.mountedEngines(id),
    })),
  }));
};

/**
 * Returns `engine` if all models of the voice use the same engine, otherwise `engines`. The result is empty
 * if no engine is known.
 */
function enginesOf({ engines }: DirectoryVoice): { engine?: string; engines?: DirectoryVoice["engines"] } {
  const [engine, ...more] = new Set(Object.values(engines));
  if (engine === undefined) return {};
  return more.length === 0 ? { engine } : { engines };
}

/** Serves `GET /openapi.json`, which needs no API key. */
export const openapiRoute: FastifyPluginAsync<Pick<RequestRules, "highestRate">> = async (
  app,
  { highestRate },
) => {
  const document = JSON.stringify(openapiDocument(highestRate));
  app.get("/openapi.json", async (_request, reply) => reply.type("application/json").send(document));
};
