/** Tests idle sockets with a fake clock (specification 11.22). */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { eventuallyOn, FakeClock } from "../../../support/fake-clock.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";
import { connectSocket, type SocketClient } from "../../../support/sockets/client.ts";
import { speakWords } from "../../../support/sockets/scripted-speech.ts";

let api: TestApi;
let model: ScriptedModel;
const clock = new FakeClock();
const open: SocketClient[] = [];

beforeAll(async () => {
  model = await startScriptedModel(speakWords);
  api = await startTestApi(model.url, {}, { clock });
});

afterEach(() => {
  for (const { socket } of open.splice(0)) socket.terminate();
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

async function connect(path: string, autoPong = true): Promise<SocketClient> {
  const client = await connectSocket(api.url, path, { key: api.key, autoPong });
  open.push(client);
  return client;
}

it.each([["/ws3?speaker=abbie"], ["/ws?speaker=abbie"], ["/ws"]])(
  "%s stays open for more than ten minutes",
  async (path) => {
    const client = await connect(path);
    let pings = 0;
    client.socket.on("ping", () => {
      pings += 1;
    });
    for (let passedMs = 0; passedMs < 660_000; passedMs += 10_000) {
      await clock.advance(10_000);
      // The client's pongs have to arrive between two pings of the server.
      await client.settled();
      await client.settled();
    }
    expect(client.closing).toBeUndefined();
    expect(pings).toBeGreaterThanOrEqual(32);
  },
);

it("a client without pongs is disconnected after two pings during a synthesis, and otherwise after ten minutes", async () => {
  const [speaking, reused, silent, responding] = [
    await connect("/ws3?speaker=abbie&segment=never", false),
    await connect("/ws3?speaker=abbie", false),
    await connect("/ws", false),
    await connect("/ws3?speaker=abbie"),
  ];
  const isClosed = (client: SocketClient) => async () => {
    await responding.settled();
    await responding.settled();
    return client.closing !== undefined;
  };
  speaking.send({ text: "One. ", contextId: "a" });
  await speaking.settled();
  const startMs = clock.monotonicMs();
  await eventuallyOn(clock, "the end of the client with open text", isClosed(speaking), 10_000);
  expect(speaking.closing?.code).toBe(1006);
  expect(clock.monotonicMs() - startMs).toBeLessThan(120_000);
  expect([reused.closing, silent.closing]).toEqual([undefined, undefined]);
  for (let passedMs = 0; passedMs < 300_000; passedMs += 10_000) {
    await clock.advance(10_000);
    await isClosed(silent)();
  }
  reused.send({ text: "Two. ", contextId: "b" }, { operation: "flush" });
  await reused.until("done");
  await eventuallyOn(clock, "the end of the silent client", isClosed(silent), 10_000);
  expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(600_000);
  expect([reused.closing, responding.closing]).toEqual([undefined, undefined]);
});

it("the request of an upgrade ends with the upgrade, so that an idle socket does not keep it", async () => {
  await connect("/ws2?speaker=abbie");
  const metrics = await (await fetch(`${api.url}/metrics`)).text();
  expect(metrics).toMatch(/_requests_total\{endpoint="\/ws2",http_status="101",method="GET"\} 1$/m);
});
