import type { FastifyInstance } from "fastify";
import { openapiDocument } from "../openapi/document.ts";

/** `GET /openapi.json`: the interface, for people and for generators of clients. Public. */
export function addOpenapiRoute(app: FastifyInstance): void {
  const document = JSON.stringify(openapiDocument());
  app.get("/openapi.json", async (_request, reply) => reply.type("application/json").send(document));
}
