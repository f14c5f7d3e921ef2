import { createHash, timingSafeEqual } from "node:crypto";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type ApiLoad, loadHeartbeatMs, loadPath, loadType } from "../../../config/contract/load.ts";
import { sleep } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import type { ApiContext } from "../services/api-context.ts";

/** How soon a change is told. */
const lookMs = 200;

/** What the operator scales pools by; for it alone. */
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

/** Takes as long for a near miss as for a wild one. */
function isInternal(header: string | undefined, token: string | undefined): boolean {
  const given = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (given === undefined || token === undefined || token === "") return false;
  return timingSafeEqual(digest(given), digest(token));
}

function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** Ends when the server leaves, so that it holds no drain up, and with the reader. */
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
