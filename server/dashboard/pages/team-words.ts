import type { FastifyRequest } from "fastify";
import { base } from "./layout.ts";
import { sessionOf } from "./session.ts";

export const place = `${base}/words`;

/** The address of the page of a team's words. Without a team, an owner would see the page of their own team. */
export function pageOf(team: string): string {
  return `${place}?team=${encodeURIComponent(team)}`;
}

/** An owner selects the team; every other user has one. */
export function teamOf(request: FastifyRequest, asked: string): string {
  const { role, team } = sessionOf(request).person;
  return role === "owner" ? asked : (team ?? "");
}
