import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { type WebSocket, WebSocketServer } from "ws";
import { Failure } from "../../contract/errors.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import type { Tracing } from "../../tracing/span.ts";
import { authenticate, requireScope } from "../access/authenticate.ts";
import { limitRate } from "../access/rate-limit.ts";
import type { Lifecycle } from "../lifecycle/drain.ts";
import type { OpenSocket, OpenSockets } from "../lifecycle/open-sockets.ts";
import type { SocketOptions } from "../request/socket-options.ts";
import type { RequestRules } from "../request/speech-request.ts";
import { dialectOf } from "../sockets/dialects.ts";
import {
  readSubprotocols,
  resolveEndpoint,
  type SocketEndpoint,
  selectSubprotocol,
} from "../sockets/endpoint.ts";
import { readParameters } from "../sockets/parameters.ts";
import { sendPlainError, upgradeErrorText } from "../sockets/plain-errors.ts";
import { shareSettings } from "../sockets/shared-settings.ts";
import { SocketConnection } from "../sockets/socket-connection.ts";
import { type SocketIdentity, socketIdentity } from "../sockets/socket-identity.ts";
import { createSocketLimits, type SocketLimits } from "../sockets/socket-limits.ts";
import type { SocketRules, SocketSettings } from "../sockets/socket-settings.ts";
import type { SocketCaller } from "../sockets/socket-synthesis.ts";
import { TextSocket } from "../sockets/text-socket.ts";
import { modelOfConnection } from "../sockets/v1/context-settings.ts";
import { ContextSocket, type ContextSocketServices } from "../sockets/v1/context-socket.ts";

/** The highest number of bytes in one message of a client. */
const longestMessage = 16 * 1024;
const longestV1Message = 128 * 1024;

const socketScope = "tts:write";

interface Upgrade {
  readonly socket: Socket;
  /** The bytes that the client sent after its request. */
  readonly head: Buffer;
  readonly endpoint: SocketEndpoint;
  readonly query: string;
  readonly parameters: ReadonlyMap<string, string>;
  /**
   * Whether a page of the dashboard opens the socket. The client then authenticates with its session instead
   * of a key.
   */
  readonly isOfSession: boolean;
}

/** Authenticates the sockets that pages of the dashboard open, by the session of the user. */
export interface SessionSockets {
  readonly path: string;
  /**
   * Authenticates an upgrade.
   * @throws Failure if the page belongs to another site, or the session does not allow synthesis.
   */
  authenticate(request: Pick<FastifyRequest, "headers">): Promise<ApiKey>;
}

/** The headers of the response to an upgrade, by its request. */
type AnswerHeaders = WeakMap<IncomingMessage, Readonly<Record<string, string>>>;

/**
 * Returns whether the client requests a WebSocket. The server ignores other upgrades, for example to HTTP/2.
 */
export function isSocketUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

interface SocketRouteOptions extends ContextSocketServices {
  /**
   * Returns the current rules. The server calls this function for each socket and each context, because the
   * available voices change.
   */
  readonly rules: () => RequestRules;
  readonly sockets: SocketOptions & { readonly open: OpenSockets };
  readonly lifecycle: Pick<Lifecycle, "isLeaving">;
  readonly tracing: Tracing;
  /** Authenticates the sockets of the dashboard. The value is undefined if the dashboard is off. */
  readonly session: SessionSockets | undefined;
}

/** Serves `/ws`, `/ws2` and `/ws3` under any prefix. The hooks of other requests also run for upgrades. */
export const socketRoutes: FastifyPluginAsync<SocketRouteOptions> = async (app, parts) => {
  const upgrades = new WeakMap<IncomingMessage, Upgrade>();
  const answerHeaders: AnswerHeaders = new WeakMap();
  const limits = createSocketLimits({ ...parts.sockets, clock: parts.clock });
  const servers = {
    older: createServer(answerHeaders, longestMessage),
    v1: createServer(answerHeaders, longestV1Message),
  };
  const requireKey = requireScope(parts.keys, socketScope, parts.now);
  const rules = () => rulesOf(parts);
  const acceptance: Acceptance = {
    ...{ parts, servers, limits, answerHeaders, rules },
    settingsOf: shareSettings(rules),
    logFailure(err) {
      const requestId = parts.sockets.open.requestIdOf(this);
      app.log.debug({ err, requestId }, "a WebSocket failed, or its client violated the protocol");
    },
  };
  app.server.on("upgrade", (request, socket, head) =>
    routeUpgrade(app, upgrades, parts.session?.path, request, socket as Socket, head),
  );
  for (const url of ["/ws", "/ws2", "/ws3"]) {
    app.route({
      method: "GET",
      url,
      onRequest: [
        refuseWhileLeaving(parts.lifecycle),
        async (request, reply) => {
          const upgrade = upgrades.get(request.raw);
          if (upgrade?.isOfSession) request.apiKey = await parts.session?.authenticate(request);
          else if (!sendsKeyLater(request, upgrade)) await requireKey(request, reply);
        },
        limitRate(parts.quotas),
      ],
      errorHandler: (error, request, reply) => sendPlainError(error, request, reply),
      handler: (request, reply) => {
        const upgrade = upgrades.get(request.raw);
        if (!upgrade)
          throw new Failure(
            "upgrade_required",
            "This path accepts only WebSocket connections; use a WebSocket client.",
          );
        accept(acceptance, request, reply, upgrade);
      },
    });
  }
};

/**
 * Returns whether a later message contains the API key. Browsers cannot set headers, so v1 allows the key in
 * the first message.
 */
function sendsKeyLater({ headers }: FastifyRequest, upgrade: Upgrade | undefined): boolean {
  return upgrade?.endpoint.protocol === "v1" && headers.authorization === undefined;
}

function createServer(answerHeaders: AnswerHeaders, maxPayload: number): WebSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false, // The compression of base64 audio saves little, and adds latency.
    maxPayload,
    handleProtocols: (offered) => selectSubprotocol(offered) ?? false,
  });
  server.on("headers", (lines, request) => {
    for (const [name, value] of Object.entries(answerHeaders.get(request) ?? {}))
      lines.push(`${name}: ${value}`);
  });
  return server;
}

/**
 * Creates a hook that rejects new sockets during the drain, because the server would close these sockets
 * immediately.
 */
function refuseWhileLeaving(lifecycle: Pick<Lifecycle, "isLeaving">) {
  return async (): Promise<void> => {
    if (!lifecycle.isLeaving()) return;
    throw new Failure("draining", "This server is shutting down; connect again to reach another server.", {
      retryAfterSeconds: 1,
    });
  };
}

/**
 * Normalizes an upgrade, and calls the route of its endpoint. Some clients send the upgrade as POST, with the
 * older scheme `Api-Key`, or under a prefix of the path.
 */
function routeUpgrade(
  app: FastifyInstance,
  upgrades: WeakMap<IncomingMessage, Upgrade>,
  sessionPath: string | undefined,
  request: IncomingMessage,
  socket: Socket,
  head: Buffer,
): void {
  socket.on("error", destroySocket);
  const [path = "", query = ""] = splitOnce(request.url ?? "/", "?");
  const parameters = readParameters(query);
  const subprotocols = readSubprotocols(request.headers["sec-websocket-protocol"]);
  const endpoint = resolveEndpoint(path, subprotocols, parameters);
  if (endpoint) {
    upgrades.set(request, {
      ...{ socket, head, endpoint, query, parameters },
      isOfSession: path === sessionPath,
    });
    request.method = "GET";
    request.url = endpoint.route;
    const { authorization } = request.headers;
    if (authorization) request.headers.authorization = authorization.replace(/^Api-Key /i, "Bearer ");
  }
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false; // The HTTP parser is detached from this connection.
  response.assignSocket(socket);
  response.once("finish", () => socket.destroySoon());
  app.routing(request, response);
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

interface Acceptance {
  readonly parts: SocketRouteOptions;
  readonly servers: Readonly<Record<"older" | "v1", WebSocketServer>>;
  readonly limits: SocketLimits;
  readonly answerHeaders: AnswerHeaders;
  readonly rules: () => SocketRules;
  /** Returns the settings of a socket of an older protocol by its query. */
  readonly settingsOf: (query: string) => SocketSettings;
  /** Logs the failure of a WebSocket. */
  readonly logFailure: (this: WebSocket, error: Error) => void;
}

/** The handler of a connection after its upgrade to a WebSocket. */
interface Serving {
  readonly server: WebSocketServer;
  /** The headers of the response to the upgrade, in addition to `X-Request-Id`. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Serves the connection.
   * @param leave removes the connection from the count of its API key.
   */
  readonly serve: (webSocket: WebSocket, leave: () => void) => OpenSocket;
}

/**
 * Upgrades the connection to a WebSocket.
 * @throws Failure if the socket is rejected.
 */
function accept(
  acceptance: Acceptance,
  request: FastifyRequest,
  reply: FastifyReply,
  upgrade: Upgrade,
): void {
  checkHandshake(request);
  const isV1 = upgrade.endpoint.protocol === "v1";
  const serving = (isV1 ? serveContexts : serveText)(acceptance, request, upgrade);
  const { socket, head } = upgrade;
  const leave = enter(acceptance, socket, request.apiKey);
  void reply.hijack();
  request.isUpgraded = true;
  acceptance.answerHeaders.set(request.raw, { "x-request-id": request.id, ...serving.headers });
  serving.server.handleUpgrade(request.raw, socket, head, (webSocket) => {
    webSocket.on("error", acceptance.logFailure);
    acceptance.parts.sockets.open.add(webSocket, serving.serve(webSocket, leave));
    endExchange(reply, socket);
  });
}

/**
 * Ends the exchange of the upgrade, which frees the memory of the request and of the response. Otherwise an
 * idle socket would keep both.
 */
function endExchange({ raw }: FastifyReply, socket: Socket): void {
  raw.detachSocket(socket);
  raw.emit("close");
  socket.off("error", destroySocket); // The WebSocket handles the errors of its connection.
}

function destroySocket(this: Socket): void {
  this.destroy();
}

/**
 * Counts the connection for its API key until the connection closes. All connections without a key have one
 * common count.
 * @returns a function that removes the connection from the count earlier.
 * @throws Failure `too_many_sockets`.
 */
function enter({ limits }: Acceptance, socket: Socket, apiKey: ApiKey | undefined): () => void {
  const leave = limits.enter(apiKey?.id ?? "");
  socket.on("close", leave);
  if (socket.destroyed) leave();
  return leave;
}

/**
 * Prepares a socket of an older protocol.
 * @throws Failure `invalid_request` if a parameter of the query is invalid, or `license_required` if the
 * license does not allow the model.
 */
function serveText(
  { parts, servers, settingsOf }: Acceptance,
  request: FastifyRequest,
  upgrade: Upgrade,
): Serving {
  const { endpoint, query } = upgrade;
  const settings = settingsOf(query);
  parts.license.admit(settings.speech.invocation.modelId);
  const { clearMode } = parts.sockets;
  const dialect = dialectOf(endpoint);
  return {
    server: servers.older,
    headers: headersOf(settings),
    serve: (webSocket) => {
      const caller = callerOf(parts, request, upgrade, webSocket);
      return new TextSocket({ parts, socket: webSocket, dialect, settings, caller, clearMode });
    },
  };
}

function serveContexts(acceptance: Acceptance, request: FastifyRequest, upgrade: Upgrade): Serving {
  const { parts, servers } = acceptance;
  const { socket, endpoint, parameters } = upgrade;
  const { host } = request.headers;
  const { aliases } = parts.sockets;
  const modelId = modelOfConnection(endpoint.pathModel, parameters.get("modelId"), host, aliases);
  return {
    server: servers.v1,
    headers: {},
    serve: (webSocket, leave) =>
      new ContextSocket({
        parts,
        socket: webSocket,
        encoding: webSocket.protocol === "rime.v1.binary" ? "binary" : "json",
        modelId,
        caller: callerOf(parts, request, upgrade, webSocket),
        rules: acceptance.rules,
        enter: entryOf(acceptance, socket, leave),
      }),
  };
}

/** Returns a function that counts the socket for the API key of its first message. */
function entryOf(acceptance: Acceptance, socket: Socket, leave: () => void): (apiKey: ApiKey) => void {
  return (apiKey) => {
    enter(acceptance, socket, apiKey);
    leave();
  };
}

function rulesOf({ rules, sockets: { aliases } }: SocketRouteOptions): SocketRules {
  return { ...rules(), aliases };
}

/** Validates the handshake by the rules of the library `ws`, but before the socket counts for its API key. */
function checkHandshake({ headers }: FastifyRequest): void {
  const isValid =
    /^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? "") &&
    ["8", "13"].includes(String(headers["sec-websocket-version"]));
  if (!isValid)
    throw new Failure(
      "malformed_http",
      "The WebSocket handshake is not valid (RFC 6455); use a WebSocket client.",
    );
}

function headersOf({ speech }: SocketSettings): Readonly<Record<string, string>> {
  return {
    "x-model": speech.invocation.modelId,
    "x-voice": speech.invocation.speaker,
    "x-sampling-rate": String(speech.rate),
  };
}

function callerOf(
  parts: SocketRouteOptions,
  { id, apiKey, headers }: FastifyRequest,
  { socket, endpoint: { route }, isOfSession }: Upgrade,
  webSocket: WebSocket,
): SocketCaller {
  return new SocketConnection({
    ...{ tracing: parts.tracing, requestId: id, endpoint: route, headers, socket, webSocket },
    identity: apiKey && identityOf(parts, apiKey, headers, isOfSession),
  });
}

/**
 * Returns the identity of the client. Its functions keep only the credential, so that an idle socket needs
 * little memory.
 */
function identityOf(
  parts: SocketRouteOptions,
  apiKey: ApiKey,
  headers: FastifyRequest["headers"],
  isOfSession: boolean,
): SocketIdentity {
  const { session } = parts;
  return isOfSession && session
    ? identityOfSession(session, apiKey, headers)
    : identityOfKey(parts, apiKey, headers.authorization);
}

function identityOfSession(
  session: SessionSockets,
  apiKey: ApiKey,
  headers: FastifyRequest["headers"],
): SocketIdentity {
  const again = () => session.authenticate({ headers });
  return socketIdentity(apiKey, again, (failure) => upgradeErrorText(failure, headers.authorization));
}

function identityOfKey(
  { keys, now }: SocketRouteOptions,
  apiKey: ApiKey,
  authorization: string | undefined,
): SocketIdentity {
  const again = () => authenticate({ store: keys, scope: socketScope, now }, authorization);
  return socketIdentity(apiKey, again, (failure) => upgradeErrorText(failure, authorization));
}
