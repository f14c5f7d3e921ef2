/**
 * Simulates the requests that the operator sends to API pods: their load, which changes continuously, and
 * their metrics.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import {
  type ApiLoad,
  loadHeartbeatMs,
  loadPath,
  loadType,
  type PoolLoad,
} from "../../../../config/contract/load.ts";
import { ports } from "../../../../config/contract/names.ts";

/**
 * The network of the simulated pods. The addresses are loopback addresses, so that one server responds for
 * all pods.
 */
export const podCidr = "127.64.0.0/12";
const pools = ["mist", "arcana"];

export interface ApiPods extends AsyncDisposable {
  /** The number of open connections for load reports. */
  readonly followed: number;
  /** The number of reports with other figures than the previous report. */
  readonly changes: number;
  /** Changes the streams of every pool at this interval from now on. The interval 0 stops the changes. */
  changeEvery(periodMs: number): void;
}

/** Starts the simulated API pods. `most` is the highest number of streams of a pool. */
export async function playApiPods(most: number): Promise<ApiPods> {
  /** The connections, with the last report that was sent on each. */
  const listeners = new Map<ServerResponse, string>();
  let periodMs = 0;
  let changes = 0;
  const report = (response: ServerResponse, line = `${JSON.stringify(someLoad(most))}\n`) => {
    listeners.set(response, line);
    response.write(line);
  };
  const server = createServer((request, response) => {
    if (request.url !== loadPath) {
      response.writeHead(request.url === "/metrics" ? 200 : 404, { "content-type": "text/plain" }).end();
      return;
    }
    response.writeHead(200, { "content-type": loadType });
    report(response);
    response.once("close", () => listeners.delete(response));
  });
  // One timer serves all pods. Each pod reports at its own time in the interval.
  let turn = 0;
  const timer = setInterval(() => {
    turn += 1;
    let index = 0;
    for (const [response, last] of listeners) {
      index += 1;
      const isTurn = (everyMs: number) => (turn + index) % Math.max(1, Math.round(everyMs / tickMs)) === 0;
      if (periodMs > 0 && isTurn(periodMs)) {
        changes += 1;
        report(response);
      } else if (isTurn(loadHeartbeatMs)) report(response, last);
    }
  }, tickMs);
  server.listen(ports.api, "0.0.0.0");
  try {
    await once(server, "listening");
  } catch (cause) {
    clearInterval(timer);
    throw new Error(
      `port ${ports.api}, which the simulated API pods need, is in use: stop the program that listens there`,
      {
        cause,
      },
    );
  }
  return {
    get followed() {
      return listeners.size;
    },
    get changes() {
      return changes;
    },
    changeEvery(every) {
      periodMs = every;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

const tickMs = 100;

function someLoad(most: number): ApiLoad {
  return { pools: Object.fromEntries(pools.map((pool) => [pool, someStreams(most)])) };
}

function someStreams(most: number): PoolLoad {
  const streams = Math.floor(Math.random() * (most + 1));
  const replicas = streams === 0 ? {} : { "http://127.64.0.1:8080": streams };
  return { streams, waiting: 0, replicas, ...(streams > 0 && { firstAudioMs: 100 + streams }) };
}
