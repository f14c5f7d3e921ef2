import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { isIP } from "node:net";
import { type ConnectionOptions, connect as connectTls, type SecureContextOptions } from "node:tls";

/**
 * The number of streams on one connection. RFC 9113 (6.5.2) recommends that a server accepts at least 100.
 * The API server accepts 250.
 */
const mostStreams = 100;

const connectWithinMs = 10_000;
const windowBytes = 4 * 1024 * 1024;

interface Session {
  readonly ready: Promise<ClientHttp2Session | undefined>;
  streams: number;
  isOver: boolean;
}

/**
 * HTTP/2 streams that share TLS connections. The watch of one Secret's metadata needs some kilobytes of
 * memory. A separate TLS connection for each watch would need ten times as much.
 */
export class MultiplexedStreams {
  readonly #origin: URL;
  readonly #tls: SecureContextOptions;
  #sessions: Session[] = [];
  #isSupported = true;

  constructor(origin: URL, tls: SecureContextOptions) {
    this.#origin = origin;
    this.#tls = tls;
  }

  /**
   * Sends a request without a body. Returns undefined if the server, or a proxy in front of it, does not
   * support HTTP/2.
   */
  async get(path: string, headers: Record<string, string>): Promise<ClientHttp2Stream | undefined> {
    if (!this.#isSupported) return undefined;
    const session = this.#sessionWithRoom();
    session.streams += 1;
    try {
      const connection = await session.ready;
      if (connection === undefined) {
        this.#isSupported = false;
        return undefined;
      }
      const stream = connection.request({ ":method": "GET", ":path": path, ...headers });
      stream.once("close", () => this.#leave(session, connection));
      return stream;
    } catch (error) {
      this.#end(session);
      throw error;
    }
  }

  /**
   * Closes the connection of a stream without a timely response. The watches on the other streams of this
   * connection open new streams.
   */
  abandon(stream: ClientHttp2Stream): void {
    stream.session?.destroy();
  }

  close(): void {
    const sessions = this.#sessions;
    this.#sessions = [];
    for (const { ready } of sessions)
      ready.then(
        (connection) => connection?.destroy(),
        () => undefined,
      );
  }

  #sessionWithRoom(): Session {
    this.#sessions = this.#sessions.filter(({ isOver }) => !isOver);
    const known = this.#sessions.find(({ streams }) => streams < mostStreams);
    if (known !== undefined) return known;
    const session: Session = { ready: this.#connect(() => this.#end(session)), streams: 0, isOver: false };
    this.#sessions.push(session);
    return session;
  }

  async #connect(onOver: () => void): Promise<ClientHttp2Session | undefined> {
    const socket = connectTls(this.#tlsOptions());
    socket.setTimeout(connectWithinMs, () =>
      socket.destroy(new Error(`no connection within ${connectWithinMs} ms`)),
    );
    await once(socket, "secureConnect");
    socket.setTimeout(0);
    if (socket.alpnProtocol !== "h2") {
      socket.destroy();
      return undefined;
    }
    const connection = connect(this.#origin, { createConnection: () => socket });
    // The error itself is ignored here, because each stream also reports it.
    connection.on("error", onOver);
    connection.once("goaway", onOver);
    connection.once("close", onOver);
    await once(connection, "connect");
    // With a large window, a stream that is temporarily not read does not block the other streams.
    connection.setLocalWindowSize(windowBytes);
    return connection;
  }

  #tlsOptions(): ConnectionOptions {
    const { hostname, port } = this.#origin;
    const host = hostname.replace(/^\[|\]$/g, "");
    return {
      host,
      port: port === "" ? 443 : Number(port),
      ...(isIP(host) === 0 && { servername: host }),
      ...this.#tls,
      ALPNProtocols: ["h2", "http/1.1"],
    };
  }

  #leave(session: Session, connection: ClientHttp2Session): void {
    session.streams -= 1;
    if (session.streams > 0) return;
    this.#end(session);
    connection.close();
  }

  #end(session: Session): void {
    session.isOver = true;
  }
}
