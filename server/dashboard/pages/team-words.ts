import type { FastifyRequest } from "fastify";
import { base } from "./layout.ts";
import { sessionOf } from "./session.ts";

export const place = `${base}/words`;

/** Returns the address of the page with the words of a team. */
export function pageOf(team: string): string {
  return `${place}?team=${encodeURIComponent(team)}`;
}

/** Returns the requested team for an owner, and the own team for other users. */
export function teamOf(request: FastifyRequest, requested: string): string {
  const { role, team } = sessionOf(request).person;
  return role === "owner" ? requested : (team ?? "");
}
