import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Knows for each connection whether bytes of an error would be taken for a part of another answer. */
export class RunningAnswers {
  readonly #exchanges = new WeakMap<Socket, readonly Exchange[]>();

  constructor(server: Server) {
    server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
      const running = this.#exchanges.get(request.socket)?.filter((one) => !isOver(one)) ?? [];
      this.#exchanges.set(request.socket, [...running, { request, response }]);
    });
  }

  /**
   * Whether the connection can take an answer to bytes that are not valid HTTP: they belong to a request that has no answer yet,
   * or follow those that were answered whole.
   */
  mayAnswer(socket: Socket): boolean {
    const [first, ...pipelined] = (this.#exchanges.get(socket) ?? []).filter((one) => !isOver(one));
    if (!first) return true;
    return pipelined.length === 0 && !first.request.complete && !first.response.headersSent;
  }
}

function isOver({ request, response }: Exchange): boolean {
  return request.complete && response.writableFinished;
}
