import type { FastifyInstance } from "fastify";
import { openapiDocument } from "../openapi/document.ts";
import type { ApiContext } from "../services/api-context.ts";

/** `GET /openapi.json`: the API for people and for generators of clients. Public. */
export function addOpenapiRoute(app: FastifyInstance, { limits }: ApiContext): void {
  const document = JSON.stringify(openapiDocument(limits.highestRate));
  app.get("/openapi.json", async (_request, reply) => reply.type("application/json").send(document));
}
