import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import type { AddressInfo, Server as NetServer } from "node:net";
import { createSecureContext, createServer, type Server, type TLSSocket } from "node:tls";
import { type Clock, every } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";

export interface TlsSettings {
  readonly port: number;
  /** PEM of the certificate, with the intermediate ones after it. */
  readonly certFile: string;
  /** PEM of its private key. */
  readonly keyFile: string;
}

/** Accepts connections by TLS for a server of HTTP. */
export interface TlsListener {
  readonly server: NetServer;
  /** @returns the URL. @throws Error if the port is in use. */
  listen(host: string): Promise<string>;
  close(): void;
}

/** The kubelet swaps the symbolic link of a mounted Secret, which file events of the system miss. */
const reloadMs = 10_000;
const handshakeMs = 15_000;

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * The certificate is read again when its files change. A pair that is not valid is reported once, and the
 * last valid one stays.
 * @throws Error at the start if the pair is not valid.
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
  // The server of HTTP treats it as one of its own connections, unless it has stopped meanwhile.
  server.on("secureConnection", (socket: TLSSocket) => {
    if (http.listening) http.emit("connection", socket);
    else socket.destroy();
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());

  let complaint: string | undefined;
  const reload = () => {
    try {
      const next = readPair(settings);
      if (next.cert === pair.cert && next.key === pair.key) return;
      const until = checkPair(settings, next);
      server.setSecureContext(next);
      pair = next;
      complaint = undefined;
      log.info({ validTo: until }, "the TLS certificate was replaced");
    } catch (error) {
      const { message } = error as Error;
      const kept = "the changed TLS certificate is not valid; the last valid one stays in use";
      if (message !== complaint) log.error({ err: error }, kept);
      complaint = message;
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

/** @throws Error if the files are missing, or are not a valid pair. */
export function checkCertificate(settings: TlsSettings): void {
  checkPair(settings, readPair(settings));
}

async function listening(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port });
  await once(server, "listening"); // Rejects with the error of the server, for example if the port is in use.
}

function readPair({ certFile, keyFile }: TlsSettings): Pair {
  return { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
}

/** @returns the end of the certificate's validity. @throws Error naming the files. */
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
