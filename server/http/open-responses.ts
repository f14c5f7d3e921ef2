import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { resetConnection } from "./reset-connection.ts";

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Tracks which responses on each connection are incomplete, so that an error never becomes a part of a
 * response.
 */
export class OpenResponses {
  readonly #exchanges = new WeakMap<Socket, readonly Exchange[]>();

  constructor(server: Server) {
    server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
      const running = this.#exchanges.get(request.socket)?.filter((one) => !isOver(one)) ?? [];
      this.#exchanges.set(request.socket, [...running, { request, response }]);
    });
  }

  /**
   * Ends a connection that sent bytes which are not valid HTTP. It gets `answer` unless that would become a
   * part of another response: after a complete response nothing is sent, and a response in progress ends in
   * a reset, because its client would take an orderly end for the end of the response.
   */
  refuse(socket: Socket, answer: string): void {
    const [first, ...pipelined] = (this.#exchanges.get(socket) ?? []).filter((one) => !isOver(one));
    if (!first || (pipelined.length === 0 && !first.response.headersSent)) {
      socket.end(answer);
    } else if (pipelined.length === 0 && first.response.writableEnded) {
      socket.end();
    } else {
      resetConnection(socket);
    }
  }
}

function isOver({ request, response }: Exchange): boolean {
  return request.complete && response.writableFinished;
}
