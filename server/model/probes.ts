import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Engines } from "../engine/engines.ts";

export type TierState = "starting" | "serving" | "draining";

/** The state that probes report. */
export interface Probed {
  state(): TierState;
  /** Undefined until the engines are started. */
  engines(): Engines | undefined;
}

/**
 * `/ping` and `/readyz` are liveness: they succeed after the warm-up, also while an engine restarts within
 * its budget.
 */
export function addProbes(app: FastifyInstance, probed: Probed): void {
  const alive = (word: string) => async (_request: FastifyRequest, reply: FastifyReply) =>
    answer(reply, word, whyNotAlive(probed));
  app.get("/ping", alive("pong"));
  app.get("/readyz", alive("ok"));
  app.get("/ready", async (_request, reply) => answer(reply, "ready", whyNotReady(probed)));
}

function answer(reply: FastifyReply, word: string, problem: string | undefined): FastifyReply {
  return reply
    .code(problem === undefined ? 200 : 503)
    .type("text/plain")
    .send(problem ?? word);
}

function whyNotAlive({ state, engines }: Probed): string | undefined {
  const opened = engines();
  if (opened && opened.all().length === 0) return opened.missing.join("\n");
  if (state() === "starting" || !opened) return "the engines are starting";
  return opened.healthy() ? undefined : "a speech engine keeps dying";
}

function whyNotReady(probed: Probed): string | undefined {
  if (probed.state() === "draining") return "draining";
  return whyNotAlive(probed) ?? probed.engines()?.notReady();
}
