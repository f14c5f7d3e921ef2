import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import { languageOf } from "../../../config/contract/voices.ts";
import { Failure } from "../../contract/errors.ts";
import type { OovStore, SavedWord, WordOwner } from "../../store/oov-store.ts";
import type { Guard } from "../access/authenticate.ts";
import { wordLimits } from "../oovs/limits.ts";

interface OovsRouteOptions {
  readonly guard: Guard;
  readonly oovs: OovStore;
}

/**
 * Serves `GET /v1/oovs`. The response contains the out-of-vocabulary words that `saveOovs` recorded for the
 * team of the API key, or only for the key if it has no team.
 */
export const oovsRoute: FastifyPluginAsync<OovsRouteOptions> = async (app, { guard, oovs }) => {
  app.get("/v1/oovs", { onRequest: guard }, async (request, reply) => {
    const words = await list(oovs, ownerOf(request), readFilter(request.query));
    return reply.header("cache-control", "no-store").send({ oovs: words.map(shown) });
  });
};

function ownerOf({ apiKey }: FastifyRequest): WordOwner {
  return { keyId: apiKey?.id ?? "", team: apiKey?.team };
}

async function list(store: OovStore, ...question: Parameters<OovStore["list"]>): Promise<SavedWord[]> {
  try {
    return await store.list(...question);
  } catch (cause) {
    throw new Failure(
      "store_unavailable",
      "The database with the words is not available; try again in a moment.",
      {
        retryAfterSeconds: 5,
        cause,
      },
    );
  }
}

function readFilter(query: unknown): { readonly language?: string; readonly limit: number } {
  const { language, limit } = query as Partial<Record<"language" | "limit", unknown>>;
  return {
    ...(language !== undefined && { language: readLanguage(language) }),
    limit: limit === undefined ? wordLimits.usual : readLimit(limit),
  };
}

function readLanguage(given: unknown): string {
  const code = typeof given === "string" ? languageOf(given.toLowerCase()) : undefined;
  if (code !== undefined) return code;
  throw invalid(
    "language must be the language of a voice, such as eng or en; GET /v1/voices lists the languages.",
  );
}

function readLimit(given: unknown): number {
  const limit = typeof given === "string" && /^\d{1,6}$/.test(given) ? Number(given) : 0;
  if (limit >= 1 && limit <= wordLimits.most) return limit;
  throw invalid(`limit must be a whole number from 1 to ${wordLimits.most}.`);
}

function invalid(detail: string): Failure {
  return new Failure("invalid_request", detail);
}

function shown({ word, language, count, firstSeen, lastSeen }: SavedWord) {
  return {
    word,
    language,
    count,
    firstSeen: new Date(firstSeen).toISOString(),
    lastSeen: new Date(lastSeen).toISOString(),
  };
}
