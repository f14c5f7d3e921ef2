/** Tests a drain while clients read slowly or keep their connections. */
import { once } from "node:events";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import Fastify from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import { createLifecycle, drain } from "../../../../server/api/lifecycle/drain.ts";
import { watchForClose } from "../../../../server/api/lifecycle/graceful-close.ts";
import { SendQueueReader, unsentBytes } from "../../../../server/http/send-queues.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { folderOfTests } from "../../../support/folder.ts";

/**
 * The size of a response that exceeds the kernel's buffers, so that the server cannot send all of it to an
 * idle client.
 */
const longBytes = 32 * 1024 * 1024;
const pollMs = 100;
/** The timers of `drain`: the time limit, the end of new work, and the pause between two checks. */
const timersOfDrain = 3;
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface Logged {
  readonly level: string;
  readonly message: string;
}

/** @param tables the files with the send queues of the kernel. The default is the files of the system. */
async function start(tables?: readonly string[]) {
  const clock = new FakeClock();
  const logged: Logged[] = [];
  const write = (level: string) => (_facts: object, message: string) => logged.push({ level, message });
  const log = { info: write("info"), warn: write("warn"), error: write("error") };
  const queues = new SendQueueReader(log, tables);
  const app = Fastify({ forceCloseConnections: false });
  const connections = watchForClose(app.server, queues, clock);
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
      queues,
      cut: () => app.server.closeAllConnections(),
      clock,
    });
    return new Drain(drained, clock);
  };
  return { port, stop, logged };
}

/** A drain in progress. The test moves the clock only between two checks of the drain. */
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

  /** Advances the clock. @returns whether the drain ended within the given time */
  async pass(durationMs: number): Promise<boolean> {
    for (let passedMs = 0; passedMs < durationMs && !this.#isOver; passedMs += pollMs) {
      await this.#untilNextCheck();
      if (!this.#isOver) await this.#clock.advance(pollMs);
    }
    await this.#untilNextCheck();
    return this.#isOver;
  }

  async finish(): Promise<void> {
    while (!this.#isOver) await this.pass(pollMs);
    await this.#drained;
  }

  async #untilNextCheck(): Promise<void> {
    await eventually(
      "the next check of the drain",
      () => this.#isOver || this.#clock.timers === timersOfDrain,
    );
  }
}

/**
 * Connects a client that keeps its half of the connection open after the server has closed the other half.
 */
async function connectClient(port: number) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  sockets.push(socket);
  await once(socket, "connect");
  let lastText = "";
  let bytes = 0;
  socket.on("data", (data) => {
    bytes += data.length;
    lastText = (lastText + data.toString("latin1")).slice(-1000);
  });
  return {
    socket,
    send: (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`),
    lastText: () => lastText,
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
  it("sends the complete response to a slow client, also on a kept-alive connection", async () => {
    const { port, stop } = await start();
    const client = await connectClient(port);
    client.send("/long");
    client.socket.pause();
    await eventually("a full send queue", async () => (await unsentBytes(port)) > 100_000);
    const stopped = stop(0);
    await eventually("the server to close its port", () => refusesConnections(port));
    client.socket.resume();
    const ended = once(client.socket, "end");
    await stopped.finish();
    await ended;
    expect(client.bytes()).toBeGreaterThan(longBytes);
  });

  it("serves the next request of a client that read the last response slowly", async () => {
    const { port, stop } = await start();
    const client = await connectClient(port);
    client.send("/long");
    client.socket.pause();
    await eventually("a full send queue", async () => (await unsentBytes(port)) > 100_000);
    const stopped = stop(3_000);
    await eventually("the server to close its port", () => refusesConnections(port));
    expect(await stopped.pass(3_500), "the drain has ended while the client still reads").toBe(false);
    client.socket.resume();
    await eventually("the client to read the response", () => client.bytes() > longBytes);
    client.send("/short");
    await eventually("the next response", () => client.lastText().endsWith("short"));
    await stopped.finish();
    await eventually("the end of the connection", () => client.socket.readableEnded);
  });

  it("closes idle connections immediately, and does not wait for half-closed connections", async () => {
    const { port, stop } = await start();
    const idle = await connectClient(port);
    idle.send("/short");
    await eventually("the response", () => idle.lastText().endsWith("short"));
    const unused = await connectClient(port);
    const pauseMs = 60_000;
    const ended = Promise.all([idle, unused].map(({ socket }) => once(socket, "end")));
    expect(await stop(pauseMs).pass(1_000)).toBe(true);
    await ended;
  });
});

describe("a server that drains and cannot read the send queues of the kernel", () => {
  // A folder is not readable as a file, so each read fails with EISDIR.
  const unreadable = [import.meta.dirname];
  const failure = {
    level: "error",
    message: expect.stringMatching(/^the send queues of the kernel cannot be read/),
  };

  it("closes the connections of its clients after a pause, ends in bounded time, and logs the failure once", async () => {
    const { port, stop, logged } = await start(unreadable);
    const client = await connectClient(port);
    client.send("/short");
    await eventually("the response", () => client.lastText().endsWith("short"));
    const ended = once(client.socket, "end");
    const stopped = stop(3_000);
    expect(await stopped.pass(2_000)).toBe(false);
    expect(
      await stopped.pass(62_000),
      "the client keeps its half open for 30 s, and the kernel has 30 s",
    ).toBe(true);
    await ended;
    expect(logged).toEqual([failure]);
  });

  it("sends the complete response to a slow client", async () => {
    const { port, stop } = await start(unreadable);
    const client = await connectClient(port);
    client.send("/long");
    client.socket.pause();
    await eventually("a full send queue", async () => (await unsentBytes(port)) > 100_000);
    const stopped = stop(0);
    expect(await stopped.pass(60_000)).toBe(false);
    client.socket.resume();
    const ended = once(client.socket, "end");
    await stopped.finish();
    await ended;
    expect(client.bytes()).toBeGreaterThan(longBytes);
  });

  it("continues as usual when the send queues can be read again, and logs each change once", async () => {
    const folder = folderOfTests("send-queues");
    const table = join(folder, "tcp");
    mkdirSync(table);
    const { port, stop, logged } = await start([table]);
    const client = await connectClient(port);
    const ended = once(client.socket, "end");
    const stopped = stop(10_000);
    expect(await stopped.pass(1_000)).toBe(false);
    rmdirSync(table);
    writeFileSync(table, "");
    expect(await stopped.pass(11_000)).toBe(true);
    await ended;
    expect(logged).toEqual([
      failure,
      { level: "info", message: "the send queues of the kernel can be read again" },
    ]);
  });
});
