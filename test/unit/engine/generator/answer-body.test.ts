import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readResponseBody } from "../../../../server/engine/vllm/writer/response-body.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";

let server: Server;
let response: ServerResponse | undefined;
let clock: FakeClock;

beforeEach(async () => {
  clock = new FakeClock();
  response = undefined;
  server = createServer((_request, answer) => {
    response = answer;
    answer.write("first");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterEach(async () => {
  server.closeAllConnections();
  await once(server.close(), "close");
});

function readBody() {
  const { port } = server.address() as AddressInfo;
  const address = { url: `http://127.0.0.1:${port}`, apiKey: undefined };
  const signal = new AbortController().signal;
  return readResponseBody({ server: address, path: "/", body: "{}", silenceMs: 1000, signal, clock });
}

const textOf = (piece: IteratorResult<Uint8Array, void>) =>
  piece.done ? undefined : Buffer.from(piece.value).toString();

describe("the response of a generator", () => {
  it("continues if the reader pauses for longer than the time limit of the generator", async () => {
    const pieces = readBody();
    expect(textOf(await pieces.next())).toBe("first");
    await clock.advance(60_000);
    response?.end("second");
    expect(textOf(await pieces.next())).toBe("second");
    expect((await pieces.next()).done).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it.each([
    ["before its first piece", 0],
    ["after a piece", 1],
  ])("fails if the generator sends nothing for 1000 ms %s", async (_when, received) => {
    if (received === 0) {
      server.removeAllListeners("request");
      server.on("request", (_request, answer) => (response = answer));
    }
    const pieces = readBody();
    if (received === 1) await pieces.next();
    const next = pieces.next();
    const failed = expect(next).rejects.toThrow("the generator sent nothing for 1000 ms");
    await eventually("the server has received the request", () => response !== undefined);
    await eventually("the time limit has started", () => clock.timers === 1);
    await clock.advance(1000);
    await failed;
  });
});
