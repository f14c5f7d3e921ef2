import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Failure } from "../../contract/errors.ts";
import { endOf, isProbe } from "../../metrics/http.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { NotedSpeech, Usage, UsageRecorder } from "../../store/usage.ts";
import { beginSpan } from "../../tracing/request-span.ts";
import { noSpan, type Tracing } from "../../tracing/span.ts";
import type { Metrics } from "./metrics.ts";
import type { SynthesisRecord } from "./synthesis-record.ts";

interface ReportTargets {
  readonly metrics: Metrics;
  readonly tracing: Tracing;
  /** The recorder of the usage of API keys. The value is undefined if the settings name no database. */
  readonly usage: UsageRecorder | undefined;
}

/**
 * Writes a log line, a span and the metrics at the end of each request, without the text or the API key. The request
 * of a WebSocket ends with its upgrade, so its duration does not include the time of the open socket.
 */
export function logRequests(app: FastifyInstance, { metrics, tracing, usage }: ReportTargets): void {
  app.decorateRequest("span"); // The hook below sets the span of each request.
  app.addHook("onRequest", async (request, reply) => {
    request.span = beginSpan(tracing, request);
    reply.raw.once("close", () => {
      report(metrics, request, reply);
      if (!request.isUpgraded) noteUse(usage, request);
    });
  });
}

interface UseOfKey {
  readonly apiKey: ApiKey | undefined;
  readonly failure: Failure | undefined;
  readonly spoken: SynthesisRecord | undefined;
}

/** Records the usage of an API key. The record of the synthesis must have ended before. */
export function noteUse(usage: ReportTargets["usage"], { apiKey, failure, spoken }: UseOfKey): void {
  if (!apiKey) return;
  const use = { requests: 1, failed: failure ? 1 : 0, audioMs: (spoken?.audioSeconds ?? 0) * 1000 };
  usage?.note(apiKey.id, use, spoken && speechOf(apiKey, use, spoken));
}

/**
 * Returns the speech for the usage statistics. The time to first audio of a JSON response does not count, because a
 * JSON response is sent after the whole audio. Characters count only if the client received audio, because clients
 * repeat a text after a rejection or a failure.
 */
function speechOf({ name, team = "" }: ApiKey, use: Usage, spoken: SynthesisRecord): NotedSpeech {
  const { facts, firstAudioMs, audioSeconds } = spoken;
  const { model, voice, form } = facts;
  const hasAudio = audioSeconds > 0 && (form !== "json" || use.failed === 0);
  const characters = hasAudio ? spoken.characters : 0;
  const waited = form === "json" ? undefined : firstAudioMs;
  return {
    ...{ key: name, team, model, voice, characters },
    ...use,
    timed: waited === undefined ? 0 : 1,
    firstAudioMs: waited ?? 0,
    longestFirstAudioMs: waited ?? 0,
  };
}

/**
 * Returns whether the log line contains the client's address. The address is needed to investigate rejected
 * requests, and changes in the dashboard or of keys.
 */
function isForSecurity(method: string, endpoint: string | undefined, status: number): boolean {
  if (status === 401 || status === 403 || status === 429) return true;
  return method !== "GET" && method !== "HEAD" && /^\/(dashboard|v1\/keys)\b/.test(endpoint ?? "");
}

export function reportOnceOver(metrics: Metrics, request: FastifyRequest, reply: FastifyReply): void {
  request.span = noSpan;
  reply.raw.once("close", () => report(metrics, request, reply));
}

function report(metrics: Metrics, request: FastifyRequest, reply: FastifyReply): void {
  // A WebSocket that its client closes is not a failed request.
  const { isWhole, status } = request.isUpgraded ? { isWhole: true, status: 101 } : endOf(reply);
  const code = request.failure?.code;
  const endpoint = request.routeOptions.url;
  const { method, spoken, span } = request;
  const seconds = request.isUpgraded ? undefined : reply.elapsedTime / 1000;
  metrics.answered({ endpoint, method, status, code, seconds });
  spoken?.over(isWhole, code);
  span.set({ "http.response.status_code": status, "svc.caller_gone": !isWhole && !code });
  span.end(code);
  const facts = {
    method,
    endpoint: endpoint ?? "other",
    status,
    durationMs: Math.round(reply.elapsedTime),
    ...(span.traceId && { traceId: span.traceId }),
    ...(code && { code }),
    ...(!isWhole && !code && { clientGone: true }),
    ...(request.apiKey && { keyId: request.apiKey.id, key: request.apiKey.name }),
    ...(request.visit && { person: request.visit.person.name }),
    ...(isForSecurity(method, endpoint, status) && { source: request.ip }),
    ...(spoken && {
      ...spoken.facts,
      audioSeconds: Number(spoken.audioSeconds.toFixed(3)),
      ...(spoken.firstAudioMs !== undefined && { firstAudioMs: Math.round(spoken.firstAudioMs) }),
    }),
  };
  request.log[isProbe(method, status) ? "debug" : "info"](facts, "request");
}
