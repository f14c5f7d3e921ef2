import type { FastifyInstance } from "fastify";
import { models } from "../../../config/contract/models.ts";
import { openapiDocument } from "../openapi/document.ts";
import type { ApiContext } from "../services/api-context.ts";

/** `GET /v1/voices` and `GET /v1/models`. They are public, because they reveal nothing about users. */
export function addCatalogueRoutes(app: FastifyInstance, { voices, prober }: ApiContext): void {
  app.get("/v1/voices", async () => ({
    voices: voices.all().map(({ id, models: speakable, language, gender, license, mountedEngine }) => ({
      id,
      models: speakable,
      language,
      gender,
      license,
      ...(mountedEngine && { engine: mountedEngine }),
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
      mountedEngines: voices.engines(id),
    })),
  }));
}

/** `GET /openapi.json`: the API for people and for generators of clients. Public. */
export function addOpenapiRoute(app: FastifyInstance, { limits }: ApiContext): void {
  const document = JSON.stringify(openapiDocument(limits.highestRate));
  app.get("/openapi.json", async (_request, reply) => reply.type("application/json").send(document));
}
