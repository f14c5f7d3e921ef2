import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Clock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import type { ApiLimits } from "./limits.ts";
import type { MemoryBudget, MemoryReservation } from "./memory-budget.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The reservation of this request in the shared memory budget. */
    memory: MemoryReservation;
  }
}

export interface BodyOptions {
  readonly limitBytes: number;
  readonly clock: Clock;
  /** The time for which memory is reserved for bytes that a client has announced but not sent. */
  readonly promiseMs: number;
}

/**
 * Computes the options from the limits. An announced body that does not arrive reserves memory for a third of
 * the longest wait, so that waiting requests get this memory in time.
 */
export function bodyOptions(limits: ApiLimits, clock: Clock): BodyOptions {
  return { limitBytes: limits.bodyBytes, clock, promiseMs: limits.heldWaitMs / 3 };
}

/**
 * Bodies up to this size need no reservation, so they do not wait for large bodies. The number of connections
 * bounds their memory. The server rejects larger bodies of unauthenticated clients.
 */
const smallBytes = 64 * 1024;
/**
 * The number of copies of a body that exist at the same time: the bytes, the JSON text, the text to
 * synthesize, and the invocation.
 */
export const bodyCopies = 4;

/** Makes the server accept only bodies of uncompressed JSON in UTF-8. */
export function takeJsonOnly(
  app: FastifyInstance,
  options: BodyOptions & { readonly budget: MemoryBudget },
): void {
  app.decorateRequest("memory");
  app.addHook("onRequest", async (request, reply) => {
    const memory = options.budget.open();
    request.memory = memory;
    reply.raw.once("close", () => memory.free());
  });
  app.addHook("preParsing", async (request, reply) => {
    if (isContinueExpected(request)) reply.raw.writeContinue(); // An earlier hook has verified the API key.
  });
  // A client with `Expect: 100-continue` sends its body only after the server has accepted the headers.
  app.server.on("checkContinue", (request, response) => app.server.emit("request", request, response));
  // The server ignores other expectations, as RFC 9110 (10.1.1) allows.
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  app.removeAllContentTypeParsers();
  addJsonParser(app, options);
}

export function addJsonParser(scope: FastifyInstance, options: BodyOptions): void {
  scope.addContentTypeParser(
    "application/json",
    async (request: FastifyRequest, payload: IncomingMessage) => {
      refuseEncoded(request);
      return parseJson(await readBody(request, payload, options));
    },
  );
}

function isContinueExpected({ headers }: FastifyRequest): boolean {
  return headers.expect?.toLowerCase() === "100-continue";
}

function refuseEncoded({ headers }: FastifyRequest): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new Failure("unsupported_media_type", "Send the body uncompressed, without Content-Encoding.");
  }
}

async function readBody(
  request: FastifyRequest,
  payload: Readable,
  { limitBytes: most, clock, promiseMs }: BodyOptions,
): Promise<Buffer> {
  const limitBytes = request.apiKey ? most : Math.min(most, smallBytes);
  const declared = Number(request.headers["content-length"] ?? Number.NaN);
  if (declared > limitBytes) throw tooLarge(limitBytes);
  const bodyMemory = new BodyMemory({ memory: request.memory, declared, limitBytes, clock, promiseMs });
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of arriving(payload)) {
      bytes += piece.length;
      if (bytes > limitBytes) throw tooLarge(limitBytes);
      await bodyMemory.growTo(bytes);
      pieces.push(piece);
    }
  } finally {
    bodyMemory.shrink();
  }
  return Buffer.concat(pieces, bytes);
}

interface BodyMemoryOptions extends BodyOptions {
  readonly memory: MemoryReservation;
  /** The value of `Content-Length`, or NaN if the client did not send this header. */
  readonly declared: number;
}

/**
 * Reserves memory for a body while the body arrives. The first `smallBytes` need no reservation. For a larger
 * body, the server reserves the announced size at once, so that it receives large bodies one after the other
 * when memory is scarce. If the client does not send the announced bytes in time, the server releases the
 * unused memory. After that, the reservation grows with the received bytes.
 */
class BodyMemory {
  readonly #options: BodyMemoryOptions;
  #arrived = 0;
  #reserved = 0;
  #isAnnounced: boolean;
  #cancelLapse = (): void => undefined;

  constructor(options: BodyMemoryOptions) {
    this.#options = options;
    this.#isAnnounced = !Number.isNaN(options.declared);
  }

  async growTo(bytes: number): Promise<void> {
    this.#arrived = bytes;
    if (bytes <= Math.max(smallBytes, this.#reserved)) return;
    const { memory, declared, limitBytes, clock, promiseMs } = this.#options;
    const neededBytes = this.#isAnnounced ? declared : Math.min(limitBytes, 2 * bytes);
    await memory.take(bodyCopies * (neededBytes - this.#reserved));
    this.#reserved = neededBytes;
    if (!this.#isAnnounced) return;
    this.#cancelLapse = clock.after(
      promiseMs,
      () => {
        this.#isAnnounced = false;
        this.shrink();
      },
      { isBackground: true },
    );
  }

  /** Releases the memory of bytes that have not arrived. */
  shrink(): void {
    this.#cancelLapse();
    const unused = Math.max(0, this.#reserved - this.#arrived);
    this.#reserved -= unused;
    this.#options.memory.release(bodyCopies * unused);
  }
}

/** Yields the bytes of the body. If the reader stops early, the connection stays open for the response. */
async function* arriving(payload: Readable): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const piece of payload.iterator({ destroyOnReturn: false })) yield piece as Buffer;
  } catch (cause) {
    throw new Failure("request_timeout", "The body ended before it was complete; send it again.", { cause });
  }
}

function tooLarge(limitBytes: number): Failure {
  return new Failure("body_too_large", `The body is larger than ${limitBytes} bytes; send a shorter text.`);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    // The error has no cause, because the cause would quote the text to synthesize.
    throw new Failure("malformed_json", "The body is not JSON in UTF-8; check quotes and commas.");
  }
}
