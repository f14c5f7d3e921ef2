/** A server that ends while callers lag behind what it wrote, or keep their connections. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import Fastify from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { watchForClose } from "../../../server/api/graceful-close.ts";
import { createLifecycle, drain } from "../../../server/api/lifecycle.ts";
import { unsentBytes } from "../../../server/kernel-queues.ts";
import { eventually } from "../../support/eventually.ts";

/** More than the kernel takes: the server has ended the answer, and holds the most of it. */
const longBytes = 32 * 1024 * 1024;
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

async function start() {
  const app = Fastify({ forceCloseConnections: false });
  const connections = watchForClose(app.server);
  app.get("/long", (_request, reply) => reply.send(Buffer.alloc(longBytes, "a")));
  app.get("/short", () => "short");
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.addresses()[0] as { port: number };
  const stop = (lastPauseMs: number) =>
    drain(app, createLifecycle(), {
      farewellMs: 0,
      lastPauseMs,
      drainMs: 50_000,
      connections,
      cut: () => app.server.closeAllConnections(),
    });
  return { port, stop };
}

/** A caller that keeps its connection, and its own half of it when the server's is closed. */
async function call(port: number) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  sockets.push(socket);
  await once(socket, "connect");
  let heard = "";
  let bytes = 0;
  socket.on("data", (data) => {
    bytes += data.length;
    heard = (heard + data.toString("latin1")).slice(-1000);
  });
  return {
    socket,
    ask: (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`),
    heard: () => heard,
    bytes: () => bytes,
  };
}

async function refusesConnections(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}

describe("a server that drains", () => {
  it("gives the whole of an answer to a slow reader who keeps the connection", async () => {
    const { port, stop } = await start();
    const caller = await call(port);
    caller.ask("/long");
    caller.socket.pause();
    await eventually("the kernel is full", async () => (await unsentBytes(port)) > 100_000);
    const stopped = stop(0);
    await eventually("new connections are refused", () => refusesConnections(port));
    caller.socket.resume();
    await once(caller.socket, "end");
    expect(caller.bytes()).toBeGreaterThan(longBytes);
    await stopped;
  });

  it("answers the next request of who was long in reading the last answer", async () => {
    const { port, stop } = await start();
    const caller = await call(port);
    caller.ask("/long");
    caller.socket.pause();
    await eventually("the kernel is full", async () => (await unsentBytes(port)) > 100_000);
    const stopped = stop(3_000);
    await eventually("new connections are refused", () => refusesConnections(port));
    await sleep(3_500); // longer than the pause, which does not count yet
    caller.socket.resume();
    await eventually("it has read", () => caller.bytes() > longBytes);
    caller.ask("/short");
    await eventually("the next answer", () => caller.heard().endsWith("short"));
    await stopped;
    await eventually("the end", () => caller.socket.readableEnded);
  });

  it("ends at once what nobody uses, and waits for nobody to close the other half", async () => {
    const { port, stop } = await start();
    const idle = await call(port);
    idle.ask("/short");
    await eventually("the answer", () => idle.heard().endsWith("short"));
    const unused = await call(port);
    const pauseMs = 60_000;
    const ended = Promise.all([idle, unused].map(({ socket }) => once(socket, "end")));
    const startMs = performance.now();
    await stop(pauseMs);
    await ended;
    expect(performance.now() - startMs).toBeLessThan(pauseMs / 2);
  });
});
