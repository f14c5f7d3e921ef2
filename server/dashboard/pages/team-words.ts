import type { FastifyRequest } from "fastify";
import { base } from "./layout.ts";
import { sessionOf } from "./session.ts";

export const place = `${base}/words`;

/** Address of the page of a team's words. Without a team in it an owner would see the own team's page. */
export function pageOf(team: string): string {
  return `${place}?team=${encodeURIComponent(team)}`;
}

/** An owner selects the team; every other user has one. */
export function teamOf(request: FastifyRequest, asked: string): string {
  const { role, team } = sessionOf(request).person;
  return role === "owner" ? asked : (team ?? "");
}
