/** Tests idle sockets, on a clock that the test moves (11.22). */
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
      // the client's pongs have to arrive between two pings of the server
      await client.settled();
      await client.settled();
    }
    expect(client.closing).toBeUndefined();
    expect(pings).toBeGreaterThanOrEqual(32);
  },
);

it("a client that answers no ping is dropped after two while its text is open, and else after ten minutes", async () => {
  const [speaking, pooled, silent, answering] = [
    await connect("/ws3?speaker=abbie&segment=never", false),
    await connect("/ws3?speaker=abbie", false),
    await connect("/ws", false),
    await connect("/ws3?speaker=abbie"),
  ];
  const dropped = (client: SocketClient) => async () => {
    await answering.settled();
    await answering.settled();
    return client.closing !== undefined;
  };
  speaking.send({ text: "One. ", contextId: "a" });
  await speaking.settled();
  const startMs = clock.monotonicMs();
  await eventuallyOn(clock, "the speaking client is dropped", dropped(speaking), 10_000);
  expect(speaking.closing?.code).toBe(1006);
  expect(clock.monotonicMs() - startMs).toBeLessThan(120_000);
  expect([pooled.closing, silent.closing]).toEqual([undefined, undefined]);
  for (let passedMs = 0; passedMs < 300_000; passedMs += 10_000) {
    await clock.advance(10_000);
    await dropped(silent)();
  }
  pooled.send({ text: "Two. ", contextId: "b" }, { operation: "flush" });
  await pooled.until("done");
  await eventuallyOn(clock, "the silent client is dropped", dropped(silent), 10_000);
  expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(600_000);
  expect([pooled.closing, answering.closing]).toEqual([undefined, undefined]);
});
