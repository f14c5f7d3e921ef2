import type { FastifyRequest } from "fastify";
import { base } from "./layout.ts";
import { sessionOf } from "./session.ts";

export const place = `${base}/words`;

/** The page of a team's words; without a name in it an owner would be shown the own team's. */
export function pageOf(team: string): string {
  return `${place}?team=${encodeURIComponent(team)}`;
}

/** An owner chooses the team; everybody else has one. */
export function teamOf(request: FastifyRequest, asked: string): string {
  const { role, team } = sessionOf(request).person;
  return role === "owner" ? asked : (team ?? "");
}
