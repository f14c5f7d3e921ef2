import { createHash, timingSafeEqual } from "node:crypto";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ApiLoad, loadHeartbeatMs, loadPath, loadType } from "../../../config/contract/load.ts";
import { sleep } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import type { ApiContext } from "../services/api-context.ts";

/** Longest delay of a reported change. */
const lookMs = 200;

/** The load of the pools, by which the operator scales them. Only the operator may read it. */
export function addLoadRoute(app: FastifyInstance, parts: ApiContext): void {
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    if (!isInternal(request.headers.authorization, parts.internalToken())) {
      void reply.header("www-authenticate", 'Bearer realm="svc-tts"');
      throw new Failure("unauthorized", "This route is for the operator, with the internal token.");
    }
  };
  app.get(loadPath, { onRequest }, async (_request, reply) => {
    const lines = Readable.from(tellLoad(parts), { objectMode: false, highWaterMark: 1 });
    return reply.type(loadType).header("cache-control", "no-store").send(lines);
  });
}

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
}: ApiContext): AsyncGenerator<string, void, void> {
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
