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

it("a client that answers no ping is disconnected after two", async () => {
  const [silent, answering] = [
    await connect("/ws3?speaker=abbie", false),
    await connect("/ws3?speaker=abbie"),
  ];
  const answers = async () => {
    await answering.settled();
    await answering.settled();
    return silent.closing !== undefined;
  };
  await eventuallyOn(clock, "the silent client is dropped", answers, 10_000);
  expect(silent.closing?.code).toBe(1006);
  expect(answering.closing).toBeUndefined();
});
