import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { residentBytes } from "../../../test/support/processes.ts";
import type { Served } from "../common/load.ts";
import type { Measurement } from "../common/measurement.ts";
import { startApiAlone } from "./api-alone.ts";
import { openLimits } from "./open-limits.ts";

const defaultSockets = 10_000;
/** The file descriptors that a process needs in addition to the sockets. */
const reservedFiles = 200;
const mostKibibytes = 12;
const warmUpSockets = 500;
const openAtOnce = 100;
const restMs = 5_000;
/** The longest wait for a ping. The server sends a ping every 20 seconds. */
const pingLimitMs = 60_000;

/**
 * Measures the memory of idle sockets.
 * @param wanted the number of sockets.
 */
export function idleSockets(wanted: string | undefined): Measurement {
  return {
    name: "Idle WebSockets",
    async measure() {
      const count = readCount(wanted);
      const api = await startApiAlone(openLimits);
      try {
        // These sockets warm up the compiled code and the caches.
        const first = await openSockets(api, warmUpSockets);
        await sleep(restMs);
        const beforeBytes = residentBytes(api.pid);
        const sockets = await openSockets(api, count);
        await untilPinged(sockets);
        const afterBytes = residentBytes(api.pid);
        const lost = sockets.filter(({ socket }) => socket.readyState !== WebSocket.OPEN).length;
        close([...first, ...sockets]);
        return finding({ count, lost, beforeBytes, afterBytes });
      } finally {
        await api.stop();
      }
    },
  };
}

interface IdleSocket {
  readonly socket: WebSocket;
  pings: number;
}

/** Returns the requested number of sockets, limited by the number of files that this process may open. */
function readCount(wanted: string | undefined): number {
  const count = Number(wanted ?? defaultSockets);
  if (!Number.isInteger(count) || count < 1)
    throw new Error(`IDLE_SOCKETS must be a positive integer; it is ${wanted}.`);
  const most = openFileLimit() - reservedFiles - warmUpSockets;
  if (count <= most) return count;
  console.log(
    `    ulimit -n allows ${most} sockets instead of ${count}; raise it to ${count + reservedFiles + warmUpSockets} for all of them`,
  );
  return most;
}

/** Returns the soft limit of open files. Node.js raises the soft limit to the hard limit when it starts. */
function openFileLimit(): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  return Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.NaN);
}

async function openSockets(served: Served, count: number): Promise<IdleSocket[]> {
  const sockets: IdleSocket[] = [];
  while (sockets.length < count) {
    const batch = Math.min(openAtOnce, count - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: batch }, () => openSocket(served)))));
  }
  return sockets;
}

function openSocket({ url, key }: Served): Promise<IdleSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<IdleSocket>();
  const address = `${url.replace("http", "ws")}/ws3?modelId=arcana&speaker=luna&audioFormat=pcm`;
  const socket = new WebSocket(address, {
    headers: { authorization: `Bearer ${key}` },
    perMessageDeflate: false,
  });
  const idle = { socket, pings: 0 };
  socket.once("open", () => resolve(idle));
  socket.on("error", reject);
  socket.on("ping", () => {
    idle.pings += 1; // The client library sends the pong.
  });
  return promise;
}

/** Waits until every socket has received a ping. */
async function untilPinged(sockets: readonly IdleSocket[]): Promise<void> {
  const lateAt = performance.now() + pingLimitMs;
  while (sockets.some(({ pings }) => pings === 0)) {
    if (performance.now() > lateAt) {
      const silent = sockets.filter(({ pings }) => pings === 0).length;
      throw new Error(`${silent} of ${sockets.length} sockets received no ping within ${pingLimitMs} ms`);
    }
    await sleep(500);
  }
  await sleep(restMs);
}

function close(sockets: readonly IdleSocket[]): void {
  for (const { socket } of sockets) socket.terminate();
}

interface Idle {
  readonly count: number;
  readonly lost: number;
  readonly beforeBytes: number;
  readonly afterBytes: number;
}

function finding({
  count,
  lost,
  beforeBytes,
  afterBytes,
}: Idle): Awaited<ReturnType<Measurement["measure"]>> {
  const kibibytes = (afterBytes - beforeBytes) / count / 1024;
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  return {
    targets: [
      {
        what: `memory of each of ${count} idle WebSockets on one API process`,
        target: `at most ${mostKibibytes} KiB`,
        measured: `${kibibytes.toFixed(1)} KiB`,
        met: kibibytes <= mostKibibytes && lost === 0,
      },
    ],
    text: `${count} open sockets on which nothing is spoken, after each has answered a ping: the process has ${megabytes(afterBytes)} resident, instead of ${megabytes(beforeBytes)} without them,
and ${lost} sockets were lost. \`IDLE_SOCKETS=1000 ONLY="Idle WebSockets" make bench\` measures another number; \`ulimit -n\` must allow it.`,
  };
}
