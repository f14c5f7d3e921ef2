import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Knows for each connection which answers are not complete, so that the bytes of an error never become a part of one. */
export class OpenResponses {
  readonly #exchanges = new WeakMap<Socket, readonly Exchange[]>();

  constructor(server: Server) {
    server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
      const running = this.#exchanges.get(request.socket)?.filter((one) => !isOver(one)) ?? [];
      this.#exchanges.set(request.socket, [...running, { request, response }]);
    });
  }

  /**
   * Ends a connection that sent bytes which are not valid HTTP. It gets `answer` unless that would become a part of another
   * answer: nothing more where the last one is complete, and a reset where one is under way, whose listener would take an
   * orderly end for its end.
   */
  refuse(socket: Socket, answer: string): void {
    const [first, ...pipelined] = (this.#exchanges.get(socket) ?? []).filter((one) => !isOver(one));
    if (!first || (pipelined.length === 0 && !first.response.headersSent)) {
      socket.end(answer);
    } else if (pipelined.length === 0 && first.response.writableEnded) {
      socket.end();
    } else {
      socket.resetAndDestroy();
      socket.destroy(); // at once: by itself the reset waits until everything that was written is sent
    }
  }
}

function isOver({ request, response }: Exchange): boolean {
  return request.complete && response.writableFinished;
}
