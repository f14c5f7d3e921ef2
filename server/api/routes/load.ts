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
  /** The issuer's last response, as signed. */
  readonly licenseAnswer: () => string | undefined;
  /** The token with which the operator reads the load. Undefined while there is none. */
  readonly internalToken: () => string | undefined;
  readonly lifecycle: Pick<Lifecycle, "isLeaving">;
  readonly clock: Clock;
}

/** Longest delay of a reported change. */
const lookMs = 200;

/** The load of the pools, by which the operator scales them. Only the operator may read it. */
export const loadRoute: FastifyPluginAsync<LoadRouteOptions> = async (app, options) => {
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    if (!isInternal(request.headers.authorization, options.internalToken())) {
      void reply.header("www-authenticate", 'Bearer realm="svc-tts"');
      throw new Failure("unauthorized", "This route is for the operator, with the internal token.");
    }
  };
  app.get(loadPath, { onRequest }, async (_request, reply) => {
    const lines = Readable.from(tellLoad(options), { objectMode: false, highWaterMark: 1 });
    return reply.type(loadType).header("cache-control", "no-store").send(lines);
  });
};

/** Compares in constant time. */
function isInternal(header: string | undefined, token: string | undefined): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (given === undefined || token === undefined || token === "") return false;
  return timingSafeEqual(digest(given), digest(token));
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Ends when the server drains, so that it does not delay the drain, and when the client disconnects. */
async function* tellLoad({
  load,
  licenseAnswer,
  lifecycle,
  clock,
}: LoadRouteOptions): AsyncGenerator<string, void, void> {
  let told = "";
  let toldAt = 0;
  while (!lifecycle.isLeaving()) {
    const answer = licenseAnswer();
    const whole: ApiLoad = { ...load.read(), ...(answer !== undefined && { licenseAnswer: answer }) };
    const line = JSON.stringify(whole);
    const now = clock.monotonicMs();
    if (line !== told || now - toldAt >= loadHeartbeatMs) {
      yield `${line}\n`;
      told = line;
      toldAt = now;
    }
    await sleep(clock, lookMs);
  }
}
