/** An HTTP file server for tests of downloads. It can interrupt, change and reject responses. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export class FileServer implements AsyncDisposable {
  /** The files by path. Other paths return status 404. */
  readonly files = new Map<string, Buffer>();
  readonly requests: { path: string; range: string | undefined; authorization: string | undefined }[] = [];
  /** Handles a request before the file server. Returns true if it has sent the response. */
  rule: (request: IncomingMessage, response: ServerResponse) => boolean = () => false;
  /**
   * Numbers of bytes of a body after which the server closes the socket. Each response uses one entry, in
   * order.
   */
  readonly cuts: number[] = [];
  /**
   * Called before the server closes a socket. A test can wait here until the client has received the sent
   * part.
   */
  beforeCut: (sentBytes: number) => Promise<void> = () => Promise.resolve();
  /** Whether the server supports range requests (RFC 9110, section 14). */
  ranges = true;
  /** The validator that the server sends for the version of a file. */
  validator: "etag" | "none" = "etag";
  /** Whether the server evaluates If-Range. If not, it sends the rest of the current file. */
  ifRange = true;
  /** Whether the server sends Content-Length. */
  lengths = true;
  /** The rate of each response. Without it, the server sends as fast as the client reads. */
  bytesPerSecond: number | undefined;
  /** The number of bytes of bodies that the server has sent. */
  sentBytes = 0;
  readonly #http: Server;
  readonly #host: string;

  private constructor(http: Server, host: string) {
    this.#http = http;
    this.#host = host;
    http.on("request", (request: IncomingMessage, response: ServerResponse) =>
      this.#answer(request, response),
    );
  }

  /** @param host the address of this machine on which the server listens */
  static async start(host = "127.0.0.1"): Promise<FileServer> {
    const http = createServer().listen(0, host);
    await once(http, "listening");
    return new FileServer(http, host);
  }

  get url(): string {
    return `http://${this.#host}:${(this.#http.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.closeAllConnections();
    await once(this.#http.close(), "close");
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { range, authorization } = request.headers;
    const path = decodeURIComponent(new URL(request.url ?? "/", this.url).pathname);
    this.requests.push({ path, range, authorization });
    if (this.rule(request, response)) return;
    const file = this.files.get(path);
    if (file === undefined) response.writeHead(404).end();
    else this.#send(file, request, response);
  }

  #send(file: Buffer, request: IncomingMessage, response: ServerResponse): void {
    const etag = `"${createHash("sha256").update(file).digest("hex").slice(0, 8)}"`;
    const ifRange = this.ifRange ? request.headers["if-range"] : undefined;
    const requestedStart = /^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1];
    const start =
      this.ranges && requestedStart !== undefined && (ifRange ?? etag) === etag ? Number(requestedStart) : 0;
    if (start > 0 && start >= file.length) {
      response.writeHead(416, { "content-range": `bytes */${file.length}` }).end();
      return;
    }
    const body = file.subarray(start);
    const partial = start > 0 && { "content-range": `bytes ${start}-${file.length - 1}/${file.length}` };
    response.writeHead(start > 0 ? 206 : 200, {
      ...(this.validator === "etag" && { etag }),
      ...partial,
      ...(this.lengths && { "content-length": body.length }),
    });
    const cut = this.cuts.shift();
    if (cut === undefined) void this.#stream(body, response);
    else response.write(body.subarray(0, cut), () => void this.#cut(response, start + cut));
  }

  async #stream(body: Buffer, response: ServerResponse): Promise<void> {
    const pieceBytes = Math.max(1, Math.floor((this.bytesPerSecond ?? body.length * 10) / 10));
    for (let at = 0; at < body.length && !response.destroyed; at += pieceBytes) {
      const piece = body.subarray(at, at + pieceBytes);
      response.write(piece);
      this.sentBytes += piece.length;
      if (this.bytesPerSecond !== undefined) await sleep(100);
    }
    response.end();
  }

  async #cut(response: ServerResponse, sentBytes: number): Promise<void> {
    await this.beforeCut(sentBytes);
    response.destroy();
  }
}
