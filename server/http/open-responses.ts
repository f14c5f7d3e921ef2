import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { resetConnection } from "./reset-connection.ts";

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Tracks the incomplete responses of each connection, so that an error never becomes a part of a response.
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
   * Ends a connection that sent bytes which are not valid HTTP. If no response is in progress, the client
   * gets `response`. If the last response is already written, the connection ends in order. In all other
   * cases the connection is reset, because the client might take an orderly end of the connection for the end
   * of an incomplete response.
   */
  refuse(socket: Socket, response: string): void {
    const [first, ...pipelined] = (this.#exchanges.get(socket) ?? []).filter((one) => !isOver(one));
    if (!first || (pipelined.length === 0 && !first.response.headersSent)) {
      socket.end(response);
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
