import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ModelId } from "../../config/contract/models.ts";
import type { Failure } from "../contract/errors.ts";
import { endOf, isProbe } from "../metrics/http.ts";
import { beginSpan } from "../tracing/request-span.ts";
import type { Span, Tracing } from "../tracing/span.ts";
import type { TierMetrics } from "./metrics.ts";
import type { Progress } from "./synthesis.ts";

/** The facts of an invocation for its log line. The facts never include the text. */
export interface Invoked {
  readonly model: ModelId;
  readonly voice: string;
  readonly engine: string;
  /** The sampling rate in Hz. */
  readonly rate: number;
  readonly progress: Progress;
  /** The span of the synthesis. */
  readonly span: Span;
}

declare module "fastify" {
  interface FastifyRequest {
    invoked: Invoked | undefined;
    /** The failure of the request, which may occur after the status was sent. */
    refused: Failure | undefined;
    span: Span;
  }
}

/**
 * Adds a hook that writes one log line, one span and the metrics of each invocation when the invocation has
 * ended.
 */
export function logInvocations(app: FastifyInstance, metrics: TierMetrics, tracing: Tracing): void {
  app.decorateRequest("invoked", undefined);
  app.decorateRequest("refused", undefined);
  app.decorateRequest("span"); // The hook below sets a separate object for each request.
  app.addHook("onRequest", async (request, reply) => {
    request.span = beginSpan(tracing, request);
    reply.raw.once("close", () => report(metrics, request, reply));
  });
}

function report(metrics: TierMetrics, request: FastifyRequest, reply: FastifyReply): void {
  const { method, invoked, refused, span } = request;
  const { isWhole, status } = endOf(reply);
  const endpoint = request.routeOptions.url;
  metrics.answered({ endpoint, method, status, code: refused?.code, seconds: reply.elapsedTime / 1000 });
  const speech = invoked && reportSpeech(metrics, invoked);
  invoked?.span.end(refused?.code);
  span.set({ "http.response.status_code": status, "svc.caller_gone": !isWhole && !refused });
  span.end(refused?.code);
  const facts = {
    method,
    endpoint: endpoint ?? "other",
    status,
    durationMs: Math.round(reply.elapsedTime),
    ...(span.traceId && { traceId: span.traceId }),
    ...(refused && { code: refused.code }),
    ...(!isWhole && !refused && { clientGone: true }),
    ...speech,
  };
  request.log[isProbe(method, status) ? "debug" : "info"](facts, "request");
}

function reportSpeech(metrics: TierMetrics, { model, voice, engine, rate, progress, span }: Invoked): object {
  const audioSeconds = progress.samples / rate;
  span.set({ "svc.audio_seconds": audioSeconds, "svc.work_seconds": progress.workMs / 1000 });
  metrics.spoke(model, audioSeconds, progress.workMs / 1000);
  return {
    model,
    voice,
    engine,
    audioSeconds: Number(audioSeconds.toFixed(3)),
    workMs: Math.round(progress.workMs),
  };
}
