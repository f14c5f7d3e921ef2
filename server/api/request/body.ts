import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Clock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import type { ApiLimits } from "./limits.ts";
import type { MemoryBudget, MemoryReservation } from "./memory-budget.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** What this request holds of the memory that all requests share. */
    memory: MemoryReservation;
  }
}

interface BodyOptions {
  /** Largest body. */
  readonly limitBytes: number;
  readonly clock: Clock;
  /** How long memory is kept for bytes that a sender announced and has not sent. */
  readonly promiseMs: number;
}

/** A third of the wait for memory: whoever waits gets what others announced and did not send. */
export function bodyOptions({
  limits,
  clock,
}: {
  readonly limits: ApiLimits;
  readonly clock: Clock;
}): BodyOptions {
  return { limitBytes: limits.bodyBytes, clock, promiseMs: limits.heldWaitMs / 3 };
}

/** Bodies up to here are not counted: connections bound them, and they do not wait behind large ones. Nobody unknown may send more. */
const smallBytes = 64 * 1024;
/** A body is held as bytes, as text, as the text to speak and as the request to the model tier. */
export const bodyCopies = 4;

/** Bodies are JSON in UTF-8, uncompressed; a body's keys are only ever read by name. */
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
    if (isContinueExpected(request)) reply.raw.writeContinue(); // the key is good by now
  });
  // the caller is told to send its body once we know that we want it
  app.server.on("checkContinue", (request, response) => app.server.emit("request", request, response));
  // what else a caller expects is ignored, as RFC 9110 (10.1.1) leaves open
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
  /** NaN where the sender did not say. */
  readonly declared: number;
}

/**
 * Reserves memory for a body while it arrives. Nothing is reserved before a sender has sent more than a small body. Then the
 * announced size is reserved at once, so that large bodies take their turns instead of filling the memory halfway together. What
 * has not arrived in time is given back, and from then on the room grows with the bytes.
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

  /** Keeps no more than what has arrived. */
  shrink(): void {
    this.#cancelLapse();
    const unused = Math.max(0, this.#reserved - this.#arrived);
    this.#reserved -= unused;
    this.#options.memory.giveBack(bodyCopies * unused);
  }
}

/** The body's bytes; whoever stops reading leaves the connection as it is, for the answer. */
async function* arriving(payload: Readable): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const piece of payload.iterator({ destroyOnReturn: false })) yield piece as Buffer;
  } catch (cause) {
    throw new Failure("request_timeout", "The body broke off before it was whole; send it again.", { cause });
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
    // the cause would quote the body, and with it the text to speak
    throw new Failure("malformed_json", "The body is not JSON in UTF-8; check quotes and commas.");
  }
}
