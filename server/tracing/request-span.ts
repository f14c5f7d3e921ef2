import type { FastifyRequest } from "fastify";
import { noSpan, type Span, type Tracing } from "./span.ts";

/** Starts the span of an incoming POST request. Other requests, such as probes and scrapes, have no span. */
export function beginSpan(
  tracing: Tracing,
  { method, headers, id, routeOptions: { url } }: FastifyRequest,
): Span {
  if (method !== "POST" || url === undefined) return noSpan;
  return tracing.begin(`${method} ${url}`, headers, {
    "http.request.method": method,
    "http.route": url,
    "svc.request_id": id,
  });
}
