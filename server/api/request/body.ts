import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Clock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import type { ApiLimits } from "./limits.ts";
import type { MemoryBudget, MemoryReservation } from "./memory-budget.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The part of the shared memory budget that this request holds. */
    memory: MemoryReservation;
  }
}

export interface BodyOptions {
  /** Largest body. */
  readonly limitBytes: number;
  readonly clock: Clock;
  /** How long memory is reserved for bytes that a client announced and has not sent. */
  readonly promiseMs: number;
}

/** One third of the wait for memory, so that waiting requests get memory that was announced and not used. */
export function bodyOptions(limits: ApiLimits, clock: Clock): BodyOptions {
  return { limitBytes: limits.bodyBytes, clock, promiseMs: limits.heldWaitMs / 3 };
}

/**
 * Bodies up to this size are not counted: the number of connections bounds them, and they do not wait behind
 * large ones. Unauthenticated clients may not send more.
 */
const smallBytes = 64 * 1024;
/** A body is held as bytes, as text, as the text to synthesize, and as the request to the model tier. */
export const bodyCopies = 4;

/** Bodies are uncompressed JSON in UTF-8. Their keys are only read by name. */
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
    if (isContinueExpected(request)) reply.raw.writeContinue(); // The key is already verified.
  });
  // The client sends its body only after the request was accepted.
  app.server.on("checkContinue", (request, response) => app.server.emit("request", request, response));
  // Other expectations of a client are ignored, which RFC 9110 (10.1.1) allows.
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
  const room = new BodyRoom({ memory: request.memory, declared, limitBytes, clock, promiseMs });
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of arriving(payload)) {
      bytes += piece.length;
      if (bytes > limitBytes) throw tooLarge(limitBytes);
      await room.growTo(bytes);
      pieces.push(piece);
    }
  } finally {
    room.shrink();
  }
  return Buffer.concat(pieces, bytes);
}

interface BodyRoomOptions extends BodyOptions {
  readonly memory: MemoryReservation;
  /** NaN if the client did not send it. */
  readonly declared: number;
}

/**
 * Reserves memory for a body while it arrives. Nothing is reserved before the client has sent more than a
 * small body. Then the announced size is reserved at once, so that large bodies take turns instead of all
 * being incomplete when the memory is full. Bytes that have not arrived in time are released, and the
 * reservation then grows with the bytes.
 */
class BodyRoom {
  readonly #options: BodyRoomOptions;
  #arrived = 0;
  #reserved = 0;
  #isPromised: boolean;
  #cancelLapse = (): void => undefined;

  constructor(options: BodyRoomOptions) {
    this.#options = options;
    this.#isPromised = !Number.isNaN(options.declared);
  }

  async growTo(bytes: number): Promise<void> {
    this.#arrived = bytes;
    if (bytes <= Math.max(smallBytes, this.#reserved)) return;
    const { memory, declared, limitBytes, clock, promiseMs } = this.#options;
    const wanted = this.#isPromised ? declared : Math.min(limitBytes, 2 * bytes);
    await memory.take(bodyCopies * (wanted - this.#reserved));
    this.#reserved = wanted;
    if (!this.#isPromised) return;
    this.#cancelLapse = clock.after(
      promiseMs,
      () => {
        this.#isPromised = false;
        this.shrink();
      },
      { isBackground: true },
    );
  }

  /** Keeps only the memory of the bytes that have arrived. */
  shrink(): void {
    this.#cancelLapse();
    const unused = Math.max(0, this.#reserved - this.#arrived);
    this.#reserved -= unused;
    this.#options.memory.release(bodyCopies * unused);
  }
}

/** The body's bytes. An abandoned read leaves the connection open for the response. */
async function* arriving(payload: Readable): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const piece of payload.iterator({ destroyOnReturn: false })) yield piece as Buffer;
  } catch (cause) {
    throw new Failure("request_timeout", "The body ended before it was complete; send it again.", { cause });
  }
}

function tooLarge(limitBytes: number): Failure {
  return new Failure(
    "body_too_large",
    `The body may have ${limitBytes} bytes and has more; send less text at once.`,
  );
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    // The cause would quote the body with the text to synthesize.
    throw new Failure("malformed_json", "The body is not JSON in UTF-8; check quotes and commas.");
  }
}
