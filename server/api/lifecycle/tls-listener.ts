import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { createSecureContext, createServer, type Server, type TLSSocket } from "node:tls";
import { type Clock, every } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import { setTransport } from "../../http/reset-connection.ts";

export interface TlsSettings {
  readonly port: number;
  /** The path of the PEM file with the certificate, followed by its intermediate certificates. */
  readonly certFile: string;
  /** The path of the PEM file with the private key. */
  readonly keyFile: string;
}

/** Accepts TLS connections for an HTTP server. */
export interface TlsListener {
  readonly server: NetServer;
  /** Returns the URL. @throws Error if the port is in use. */
  listen(host: string): Promise<string>;
  close(): void;
}

/**
 * The listener reads the files periodically, because file events do not report that the kubelet replaces the
 * symbolic link of a Secret.
 */
const reloadMs = 10_000;
const handshakeMs = 15_000;

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Opens a listener that reads its certificate again when the files change. If a changed pair is invalid, the
 * listener logs the error once and keeps the last valid pair.
 * @throws Error if the pair is invalid at the start.
 */
export function openTlsListener(
  settings: TlsSettings,
  http: HttpServer,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): TlsListener {
  let pair = readPair(settings);
  log.info({ validTo: checkPair(settings, pair) }, "the TLS certificate is loaded");
  const server = createServer({
    ...pair,
    ALPNProtocols: ["http/1.1"],
    handshakeTimeout: handshakeMs,
    noDelay: true,
  });
  const transportOf = watchTransports(server);
  // The HTTP server handles the connection like its own connections. After the HTTP server has stopped, the
  // listener closes new connections.
  server.on("secureConnection", (socket: TLSSocket) => {
    const transport = transportOf(socket);
    if (!http.listening || !transport) return socket.destroy();
    setTransport(socket, transport);
    http.emit("connection", socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());

  let loggedError: string | undefined;
  const reload = () => {
    try {
      const next = readPair(settings);
      if (next.cert === pair.cert && next.key === pair.key) {
        loggedError = undefined;
        return;
      }
      const until = checkPair(settings, next);
      server.setSecureContext(next);
      pair = next;
      loggedError = undefined;
      log.info({ validTo: until }, "the TLS certificate was replaced");
    } catch (error) {
      const { message } = error as Error;
      const kept = "the changed TLS certificate is invalid; the last valid certificate stays in use";
      if (message !== loggedError) log.error({ err: error }, kept);
      loggedError = message;
    }
  };
  const stop = every(clock, reloadMs, reload);
  return {
    server,
    listen: async (host) => {
      await listening(server, host, settings.port);
      const { address, port, family } = server.address() as AddressInfo;
      return `https://${family === "IPv6" ? `[${address}]` : address}:${port}`;
    },
    close: () => {
      stop();
      server.close();
    },
  };
}

/** Checks the certificate and its key. @throws Error if the files are missing, or are not a valid pair. */
export function checkCertificate(settings: TlsSettings): void {
  checkPair(settings, readPair(settings));
}

/**
 * Returns a function that finds the TCP connection of a TLS connection by its addresses. The result is undefined if
 * the connection is closed.
 */
function watchTransports(server: Server): (secure: Socket) => Socket | undefined {
  const open = new Map<string, Socket>();
  server.on("connection", (socket: Socket) => {
    const addresses = addressesOf(socket);
    open.set(addresses, socket);
    socket.once("close", () => {
      if (open.get(addresses) === socket) open.delete(addresses);
    });
  });
  return (secure) => open.get(addressesOf(secure));
}

function addressesOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`;
}

async function listening(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port });
  // The promise rejects if the server emits an error, for example because the port is in use.
  await once(server, "listening");
}

function readPair({ certFile, keyFile }: TlsSettings): Pair {
  return { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
}

/**
 * Returns the end of the validity of the certificate. @throws Error with the names of the files, if the pair
 * is invalid.
 */
function checkPair({ certFile, keyFile }: TlsSettings, pair: Pair): string {
  try {
    const certificate = new X509Certificate(pair.cert);
    if (!certificate.checkPrivateKey(createPrivateKey(pair.key)))
      throw new Error("the key belongs to another certificate");
    createSecureContext(pair);
    return certificate.validToDate.toISOString();
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new Error(
      `${certFile} and ${keyFile} are not a certificate and its private key in PEM: ${reason}`,
      {
        cause,
      },
    );
  }
}
