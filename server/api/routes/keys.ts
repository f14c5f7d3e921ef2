import type { FastifyPluginAsync, FastifyRequest } from "fastify";
import { Failure } from "../../contract/errors.ts";
import { StoreFailure } from "../../store/database/database.ts";
import { createKey, type KeyLimits } from "../../store/keys/key.ts";
import { type KeyManager, KeyManagerError, type ListedKey } from "../../store/keys/key-manager.ts";
import type { KeyTableUser } from "../../store/keys/key-table.ts";
import type { Guard } from "../access/authenticate.ts";
import { readKeyFacts, readRotation } from "../request/key-request.ts";

interface KeyRouteOptions {
  readonly guard: Guard;
  readonly keyBook: (user: KeyTableUser) => KeyManager;
  /** The limits of keys that have no limits of their own. */
  readonly keyLimits: KeyLimits;
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * Serves `/v1/keys`, which manages the API keys in the database. The routes need the scope `admin`. A key of
 * a team manages only the keys of its team. Without a database, the server does not register these routes.
 */
export const keyRoutes: FastifyPluginAsync<KeyRouteOptions> = async (app, options) => {
  const { guard: onRequest, keyBook, keyLimits, now } = options;
  const bookOf = ({ apiKey }: FastifyRequest) =>
    keyBook({ actor: `the key ${apiKey?.name}`, team: apiKey?.team, maker: `key:${apiKey?.id}` });
  const nameOf = ({ params }: FastifyRequest) => (params as { readonly name: string }).name;

  app.get("/v1/keys", { onRequest }, async (request, reply) => {
    const listed = await inBook(bookOf(request), (book) => book.list());
    return reply.header("cache-control", "no-store").send({ keys: listed.map(shownKey) });
  });
  app.post("/v1/keys", { onRequest }, async (request, reply) => {
    const facts = readKeyFacts(request.body, now(), request.apiKey?.team, keyLimits);
    const key = createKey();
    await inBook(bookOf(request), (book) => book.create(key, facts));
    return reply.code(201).header("cache-control", "no-store").send({ name: facts.name, key });
  });
  app.post("/v1/keys/:name/rotate", { onRequest }, async (request, reply) => {
    const rotation = readRotation(request.body ?? {}, now());
    const key = createKey();
    const name = nameOf(request);
    await inBook(bookOf(request), (book) => book.rotate(name, key, rotation));
    return reply.header("cache-control", "no-store").send({ name, key });
  });
  app.delete("/v1/keys/:name", { onRequest }, async (request, reply) => {
    await inBook(bookOf(request), (book) => book.revoke(nameOf(request)));
    return reply.code(204).send();
  });
};

/**
 * Runs an operation on API keys, and converts its errors.
 * @throws Failure `not_found`, `name_taken`, `insufficient_scope` or `store_unavailable`.
 */
export async function inBook<Result>(
  book: KeyManager,
  work: (book: KeyManager) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(book);
  } catch (cause) {
    if (cause instanceof KeyManagerError) {
      throw failureOf(cause);
    }
    if (!(cause instanceof StoreFailure)) throw cause;
    throw new Failure(
      "store_unavailable",
      "The database with the API keys is not available; try again in a moment.",
      {
        retryAfterSeconds: 5,
        cause,
      },
    );
  }
}

function failureOf(cause: KeyManagerError): Failure {
  switch (cause.reason) {
    case "taken":
      return nameTakenFailure(cause);
    case "missing":
      return new Failure("not_found", "No key with this name exists; check the name.", { cause });
    case "forbidden":
      return new Failure("insufficient_scope", "Only an owner may rotate a key with the scope admin.", {
        cause,
      });
  }
}

/** The message says that names are unique over all teams, because the caller may not see the existing key. */
function nameTakenFailure(cause: KeyManagerError): Failure {
  const name = JSON.stringify(cause.keyName);
  return new Failure(
    "name_taken",
    `The name ${name} is used by an existing API key, of your team or of another one. Choose another name.`,
    {
      fields: [{ pointer: "/name", detail: `${name} is in use; key names are unique over all teams` }],
      cause,
    },
  );
}

function shownKey({ name, team, scopes, limits, secrets }: ListedKey) {
  return {
    name,
    team: team ?? null,
    scopes,
    requestsPerMinute: limits?.requestsPerMinute ?? null,
    streams: limits?.streams ?? null,
    secrets: secrets.map(({ digest, expiresAt, lastUsedAt }) => ({
      digest,
      expiresAt: shownTime(expiresAt),
      lastUsedAt: shownTime(lastUsedAt),
    })),
  };
}

function shownTime(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}
