import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Engines } from "../engine/engines.ts";

export type TierState = "starting" | "serving" | "draining";

/** The state that the probes report. */
export interface Probed {
  state(): TierState;
  /** Returns the engines, or undefined until the engines are started. */
  engines(): Engines | undefined;
}

/**
 * Adds the probes. `/ping` and `/readyz` report liveness. They succeed after the warm-up, also while an
 * engine restarts within its budget. `/ready` reports readiness.
 */
export function addProbes(app: FastifyInstance, probed: Probed): void {
  const alive = (word: string) => async (_request: FastifyRequest, reply: FastifyReply) =>
    respond(reply, word, whyNotAlive(probed));
  app.get("/ping", alive("pong"));
  app.get("/readyz", alive("ok"));
  app.get("/ready", async (_request, reply) => respond(reply, "ready", whyNotReady(probed)));
}

function respond(reply: FastifyReply, word: string, problem: string | undefined): FastifyReply {
  return reply
    .code(problem === undefined ? 200 : 503)
    .type("text/plain")
    .send(problem ?? word);
}

function whyNotAlive({ state, engines }: Probed): string | undefined {
  const opened = engines();
  if (opened && opened.all().length === 0) return opened.missing.join("\n");
  if (state() === "starting" || !opened) return "the engines are starting";
  return opened.healthy() ? undefined : "a speech engine ends repeatedly; see the log for the reason";
}

function whyNotReady(probed: Probed): string | undefined {
  if (probed.state() === "draining") return "the tier is draining";
  return whyNotAlive(probed) ?? probed.engines()?.notReady();
}
