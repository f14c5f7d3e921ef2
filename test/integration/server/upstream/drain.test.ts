/** Tests a drain while clients read slowly or keep their connections. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import Fastify from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { createLifecycle, drain } from "../../../../server/api/lifecycle/drain.ts";
import { watchForClose } from "../../../../server/api/lifecycle/graceful-close.ts";
import { unsentBytes } from "../../../../server/http/send-queues.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";

/** Exceeds the kernel's buffers: the server has ended the response, and still holds most of it. */
const longBytes = 32 * 1024 * 1024;
const pollMs = 100;
/** The timers of `drain`: the time limit, the end of new work, and the pause between two checks. */
const timersOfDrain = 3;
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

async function start() {
  const clock = new FakeClock();
  const app = Fastify({ forceCloseConnections: false });
  const connections = watchForClose(app.server, clock);
  app.get("/long", (_request, reply) => reply.send(Buffer.alloc(longBytes, "a")));
  app.get("/short", () => "short");
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.addresses()[0] as { port: number };
  const stop = (idleCloseMs: number) => {
    const drained = drain(app, createLifecycle(), {
      keepAliveGraceMs: 0,
      idleCloseMs,
      drainMs: 500_000,
      connections,
      cut: () => app.server.closeAllConnections(),
      clock,
    });
    return new Drain(drained, clock);
  };
  return { port, stop };
}

/** A draining server. The clock moves only between two of its checks. */
class Drain {
  readonly #clock: FakeClock;
  readonly #drained: Promise<void>;
  #isOver = false;

  constructor(drained: Promise<void>, clock: FakeClock) {
    this.#clock = clock;
    this.#drained = drained.finally(() => {
      this.#isOver = true;
    });
  }

  /** @returns whether the drain ended within this time of the clock. */
  async pass(durationMs: number): Promise<boolean> {
    for (let passedMs = 0; passedMs < durationMs && !this.#isOver; passedMs += pollMs) {
      await this.#nextLook();
      if (!this.#isOver) await this.#clock.advance(pollMs);
    }
    await this.#nextLook();
    return this.#isOver;
  }

  async finish(): Promise<void> {
    while (!this.#isOver) await this.pass(pollMs);
    await this.#drained;
  }

  async #nextLook(): Promise<void> {
    await eventually("the drain looks", () => this.#isOver || this.#clock.timers === timersOfDrain);
  }
}

/** A client that keeps its connection open, including its own half after the server closed the other one. */
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
  it("sends a slow client its whole response, also on a kept-alive connection", async () => {
    const { port, stop } = await start();
    const caller = await call(port);
    caller.ask("/long");
    caller.socket.pause();
    await eventually("the kernel is full", async () => (await unsentBytes(port)) > 100_000);
    const stopped = stop(0);
    await eventually("new connections are refused", () => refusesConnections(port));
    caller.socket.resume();
    const ended = once(caller.socket, "end");
    await stopped.finish();
    await ended;
    expect(caller.bytes()).toBeGreaterThan(longBytes);
  });

  it("answers the next request of a client that read its last response slowly", async () => {
    const { port, stop } = await start();
    const caller = await call(port);
    caller.ask("/long");
    caller.socket.pause();
    await eventually("the kernel is full", async () => (await unsentBytes(port)) > 100_000);
    const stopped = stop(3_000);
    await eventually("new connections are refused", () => refusesConnections(port));
    expect(await stopped.pass(3_500), "longer than the pause, which does not count yet").toBe(false);
    caller.socket.resume();
    await eventually("it has read", () => caller.bytes() > longBytes);
    caller.ask("/short");
    await eventually("the next answer", () => caller.heard().endsWith("short"));
    await stopped.finish();
    await eventually("the end", () => caller.socket.readableEnded);
  });

  it("closes idle connections at once, and does not wait for half-closed ones", async () => {
    const { port, stop } = await start();
    const idle = await call(port);
    idle.ask("/short");
    await eventually("the answer", () => idle.heard().endsWith("short"));
    const unused = await call(port);
    const pauseMs = 60_000;
    const ended = Promise.all([idle, unused].map(({ socket }) => once(socket, "end")));
    expect(await stop(pauseMs).pass(1_000)).toBe(true);
    await ended;
  });
});
