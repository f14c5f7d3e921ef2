import { createHash, timingSafeEqual } from "node:crypto";
import { Readable } from "node:stream";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { type ApiLoad, loadHeartbeatMs, loadPath, loadType } from "../../../config/contract/load.ts";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import type { Lifecycle } from "../lifecycle/drain.ts";
import type { LoadTracker } from "../upstream/load-tracker.ts";

interface LoadRouteOptions {
  readonly load: Pick<LoadTracker, "read">;
  /** Returns the latest response of the license issuer as the issuer signed it. */
  readonly licenseAnswer: () => string | undefined;
  /** Returns the internal token, or undefined if no token is configured. */
  readonly internalToken: () => string | undefined;
  readonly lifecycle: Pick<Lifecycle, "isLeaving">;
  readonly clock: Clock;
}

/** The interval between two checks for changes. */
const checkMs = 200;

/**
 * Serves the load of the pools. The operator scales the pools by this load, and authenticates with the
 * internal token.
 */
export const loadRoute: FastifyPluginAsync<LoadRouteOptions> = async (app, options) => {
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    if (!isInternal(request.headers.authorization, options.internalToken())) {
      void reply.header("www-authenticate", 'Bearer realm="svc-tts"');
      throw new Failure(
        "unauthorized",
        "The internal token is missing or wrong; only the operator may use this path.",
      );
    }
  };
  app.get(loadPath, { onRequest }, async (_request, reply) => {
    const lines = Readable.from(streamLoad(options), { objectMode: false, highWaterMark: 1 });
    return reply.type(loadType).header("cache-control", "no-store").send(lines);
  });
};

/** Returns whether the header contains the internal token. The comparison takes constant time. */
function isInternal(header: string | undefined, token: string | undefined): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (given === undefined || token === undefined || token === "") return false;
  return timingSafeEqual(digest(given), digest(token));
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Yields the load after each change and at each heartbeat. The stream ends when the server starts to drain. */
async function* streamLoad({
  load,
  licenseAnswer,
  lifecycle,
  clock,
}: LoadRouteOptions): AsyncGenerator<string, void, void> {
  let sentLine = "";
  let sentAtMs = 0;
  while (!lifecycle.isLeaving()) {
    const answer = licenseAnswer();
    const report: ApiLoad = { ...load.read(), ...(answer !== undefined && { licenseAnswer: answer }) };
    const line = JSON.stringify(report);
    const now = clock.monotonicMs();
    if (line !== sentLine || now - sentAtMs >= loadHeartbeatMs) {
      yield `${line}\n`;
      sentLine = line;
      sentAtMs = now;
    }
    await sleep(clock, checkMs);
  }
}
