import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type WebSocket, WebSocketServer } from "ws";
import { Failure } from "../../contract/errors.ts";
import { requireScope } from "../access/authenticate.ts";
import { limitRate } from "../access/rate-limit.ts";
import type { Lifecycle } from "../lifecycle/drain.ts";
import { profileOf } from "../routes/synthesis-routes.ts";
import type { ApiContext } from "../services/api-context.ts";
import { dialectOf } from "./dialects.ts";
import { readSubprotocols, resolveEndpoint, type SocketEndpoint } from "./endpoint.ts";
import { readParameters } from "./parameters.ts";
import { sendPlainError } from "./plain-errors.ts";
import { createSocketLimits, type SocketLimits } from "./socket-limits.ts";
import { readSettings, type SocketSettings } from "./socket-settings.ts";
import type { SocketCaller } from "./socket-synthesis.ts";
import { TextSocket } from "./text-socket.ts";

/** Bytes of one message from a client. */
const longestMessage = 16 * 1024;

/** A connection whose client asked for a WebSocket. */
interface Upgrade {
  readonly socket: Socket;
  /** What the client sent behind its request. */
  readonly head: Buffer;
  readonly endpoint: SocketEndpoint;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Headers of the answer to an upgrade, by its request. */
type AnswerHeaders = WeakMap<IncomingMessage, Readonly<Record<string, string>>>;

/** Every other upgrade, as to HTTP/2, is answered as if it had not been asked for. */
export function isSocketUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** `/ws`, `/ws2` and `/ws3` under any prefix. Upgrades take the same hooks as other requests. */
export function addSocketRoutes(app: FastifyInstance, parts: ApiContext): void {
  const upgrades = new WeakMap<IncomingMessage, Upgrade>();
  const answerHeaders: AnswerHeaders = new WeakMap();
  const limits = createSocketLimits({ ...parts.sockets, clock: parts.clock });
  const server = createServer(answerHeaders);
  app.server.on("upgrade", (request, socket, head) =>
    routeUpgrade(app, upgrades, request, socket as Socket, head),
  );
  for (const url of ["/ws", "/ws2", "/ws3"]) {
    app.route({
      method: "GET",
      url,
      onRequest: [
        refuseWhileLeaving(parts.lifecycle),
        requireScope(parts.keys, "tts:write", parts.now),
        limitRate(parts.quotas),
      ],
      errorHandler: (error, request, reply) => sendPlainError(error, request, reply),
      handler: (request, reply) => {
        const upgrade = upgrades.get(request.raw);
        if (!upgrade) throw new Failure("upgrade_required", "Connect with a WebSocket client.");
        accept({ parts, server, limits, answerHeaders }, request, reply, upgrade);
      },
    });
  }
}

function createServer(answerHeaders: AnswerHeaders): WebSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false, // audio in base64 hardly shrinks, and waits for it
    maxPayload: longestMessage,
  });
  server.on("headers", (lines, request) => {
    for (const [name, value] of Object.entries(answerHeaders.get(request) ?? {}))
      lines.push(`${name}: ${value}`);
  });
  return server;
}

/** New sockets would have to end at once. */
function refuseWhileLeaving(lifecycle: Lifecycle) {
  return async (): Promise<void> => {
    if (!lifecycle.isLeaving()) return;
    throw new Failure("draining", "This server is shutting down; connect again to reach another.", {
      retryAfterSeconds: 1,
    });
  };
}

/**
 * Hands an upgrade to the route of its endpoint. Some clients send it as POST, with the older scheme `Api-Key`, or under a prefix that their
 * user chose; routes and hooks then see it as all others.
 */
function routeUpgrade(
  app: FastifyInstance,
  upgrades: WeakMap<IncomingMessage, Upgrade>,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): void {
  socket.on("error", () => socket.destroy());
  const [path = "", query = ""] = splitOnce(request.url ?? "/", "?");
  const parameters = readParameters(query);
  const subprotocols = readSubprotocols(request.headers["sec-websocket-protocol"]);
  const endpoint = resolveEndpoint(path, subprotocols, parameters);
  if (endpoint) {
    upgrades.set(request, { socket, head, endpoint, parameters });
    request.method = "GET";
    request.url = endpoint.route;
    const { authorization } = request.headers;
    if (authorization) request.headers.authorization = authorization.replace(/^Api-Key /i, "Bearer ");
  }
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false; // the parser is gone from this connection
  response.assignSocket(socket);
  response.once("finish", () => socket.destroySoon());
  app.routing(request, response);
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

interface Acceptance {
  readonly parts: ApiContext;
  readonly server: WebSocketServer;
  readonly limits: SocketLimits;
  readonly answerHeaders: AnswerHeaders;
}

/** @throws Failure where the socket is refused. */
function accept(
  { parts, server, limits, answerHeaders }: Acceptance,
  request: FastifyRequest,
  reply: FastifyReply,
  { socket, head, endpoint, parameters }: Upgrade,
): void {
  checkHandshake(request);
  if (endpoint.protocol === "v1") throw new Failure("not_found", "This server does not speak that protocol.");
  const settings = readSettings(parameters, {
    voices: parts.voices.all(),
    profile: profileOf(parts),
    highestRate: parts.limits.highestRate,
    aliases: parts.sockets.aliases,
  });
  parts.license.admit(settings.speech.invocation.modelId);
  const leave = limits.enter(request.apiKey?.id ?? "");
  socket.once("close", leave);
  if (socket.destroyed) leave();
  void reply.hijack();
  request.isUpgraded = true;
  answerHeaders.set(request.raw, headersOf(request, settings));
  server.handleUpgrade(request.raw, socket, head, (webSocket) => {
    webSocket.on("error", (err) => request.log.debug({ err }, "a socket broke a rule of its protocol"));
    const { open, clearMode } = parts.sockets;
    const caller = callerOf(parts, request, endpoint, webSocket, socket);
    const dialect = dialectOf(endpoint);
    open.add(webSocket, new TextSocket({ parts, socket: webSocket, dialect, settings, caller, clearMode }));
  });
}

/** As `ws` judges it, but before the socket counts for its key. */
function checkHandshake({ headers }: FastifyRequest): void {
  const isValid =
    /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "") &&
    ["8", "13"].includes(String(headers["sec-websocket-version"]));
  if (!isValid)
    throw new Failure("malformed_http", "The handshake of the WebSocket is not valid (RFC 6455).");
}

function headersOf({ id }: FastifyRequest, { speech }: SocketSettings): Readonly<Record<string, string>> {
  return {
    "x-request-id": id,
    "x-model": speech.invocation.modelId,
    "x-voice": speech.invocation.speaker,
    "x-sampling-rate": String(speech.rate),
  };
}

function callerOf(
  { tracing }: ApiContext,
  { id, apiKey, headers }: FastifyRequest,
  { route }: SocketEndpoint,
  webSocket: WebSocket,
  socket: Socket,
): SocketCaller {
  return {
    requestId: id,
    endpoint: route,
    apiKey,
    beginSpan: (requestId) =>
      tracing.begin(`synthesis ${route}`, headers, { "http.route": route, "svc.request_id": requestId }),
    connection: { written: () => socket.bytesWritten, pending: () => webSocket.bufferedAmount },
  };
}
