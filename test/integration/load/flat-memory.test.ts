import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../support/api-tier.ts";
import { eventually } from "../../support/eventually.ts";
import { type ScriptedModel, startScriptedModel } from "../../support/scripted-model.ts";

const megabyte = 1024 * 1024;
/** A long text for arcana: a megabyte, which is some eighteen hours of speech. */
const text = "It was a long story, and it was not over yet. ".repeat(megabyte / 46);

let api: TestApi;
let model: ScriptedModel;
/** Seconds of speech that the model could hand over. */
let spokenSeconds = 0;

beforeAll(async () => {
  model = await startScriptedModel(async (call) => {
    spokenSeconds = 0;
    let over = false;
    void call.aborted.then(() => {
      over = true;
    });
    await call.head(24_000);
    while (!over) {
      await call.tone(24_000, 24_000);
      spokenSeconds += 1;
    }
  });
  const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
  api = await startTestApi({ arcana: route });
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** What this process holds, and with it the whole API tier. Buffers are freed a moment after they are collected. */
async function heldBytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const stream = (accept: string) =>
  api.post(
    { speaker: "luna", modelId: "arcana", text, audioFormat: "mp3", samplingRate: 24_000 },
    { accept },
  );

type Reader = ReadableStreamDefaultReader<Uint8Array>;

async function open(accept: string): Promise<Reader> {
  const answer = await stream(accept);
  expect(answer.status).toBe(200);
  return (answer.body as ReadableStream<Uint8Array>).getReader();
}

async function readWhile(reader: Reader, goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    if ((await reader.read()).done) throw new Error("the speech ended early");
  }
}

async function hangUp(reader: Reader): Promise<void> {
  await reader.cancel();
  await model.calls.at(-1)?.aborted;
}

describe("a megabyte of text", () => {
  it.each(["audio/mpeg", "audio/ogg", "text/event-stream"])(
    "as %s is held no more after minutes of speech than after seconds",
    async (accept) => {
      const reader = await open(accept);
      await readWhile(reader, () => spokenSeconds < 30);
      const early = await heldBytes();
      await readWhile(reader, () => spokenSeconds < 630);
      expect((await heldBytes()) - early).toBeLessThan(24 * megabyte); // what is under way comes and goes; the speech itself is 28
      await hangUp(reader);
    },
  );

  it("is spoken no faster than its reader reads", async () => {
    const reader = await open("audio/mpeg");
    let before = -1;
    const settles = async () => {
      const still = spokenSeconds === before;
      before = spokenSeconds;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return still && spokenSeconds === before;
    };
    await eventually("the model waits for the reader", settles);
    const waited = spokenSeconds;
    expect(waited).toBeLessThan(1800); // what sockets hold, of eighteen hours
    await readWhile(reader, () => spokenSeconds < waited + 10);
    await hangUp(reader);
  });
});
