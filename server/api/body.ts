import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Failure } from "../errors.ts";
import type { Allotment, ByteBudget } from "./byte-budget.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** What this request holds of the memory that all requests share. */
    memory: Allotment;
  }
}

export interface BodyOptions {
  /** Largest body. */
  readonly limitBytes: number;
  readonly budget: ByteBudget;
}

/** Bodies up to here are not counted: connections bound them, and they do not wait behind large ones. */
const smallBytes = 64 * 1024;
/** A body is held as bytes, as text, as the text to speak and as the request to the model tier. */
export const bodyCopies = 4;

/** Bodies are JSON in UTF-8, uncompressed; a body's keys are only ever read by name. */
export function takeJsonOnly(app: FastifyInstance, options: BodyOptions): void {
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
  app.addContentTypeParser("application/json", async (request: FastifyRequest, payload: IncomingMessage) => {
    refuseEncoded(request);
    return parseJson(await readBody(request, payload, options.limitBytes));
  });
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

/** A large body is held as a whole only when there is room for all that it says, or may, be. */
async function readBody(request: FastifyRequest, payload: Readable, limitBytes: number): Promise<Buffer> {
  const declared = Number(request.headers["content-length"] ?? Number.NaN);
  if (declared > limitBytes) throw tooLarge(limitBytes);
  let room = smallBytes;
  const makeRoom = async () => {
    await request.memory.take(bodyCopies * (Number.isNaN(declared) ? limitBytes : declared));
    room = limitBytes;
  };
  if (declared > room) await makeRoom();
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of arriving(payload)) {
    bytes += piece.length;
    if (bytes > limitBytes) throw tooLarge(limitBytes);
    if (bytes > room) await makeRoom();
    pieces.push(piece);
  }
  return Buffer.concat(pieces, bytes);
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
