import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { settle } from "../../support/fake-clock.ts";
import { startTestApi, type TestApi } from "../../support/server/api-tier.ts";
import { type ScriptedModel, speakOn, startScriptedModel } from "../../support/server/scripted-model.ts";
import { heldRules } from "../contract/held-rules.ts";

const held = heldRules(import.meta.filename);
const mebibyte = 1024 * 1024;
/** A long text for arcana: eighteen hours of speech. */
const text = "It was a long story, and it was not over yet. ".repeat(mebibyte / 46);
/**
 * The most audio that the model may send before the client reads it. It is far more than the socket buffers
 * hold and far less than the text: if the model sends more, the API tier keeps the audio in memory.
 */
const mostAheadSeconds = 10_800;

type Reader = ReadableStreamDefaultReader<Uint8Array>;

async function open(accept: string): Promise<Reader> {
  const answer = await api.post(
    { speaker: "luna", modelId: "arcana", text, audioFormat: "pcm", samplingRate: 24_000 },
    { accept },
  );
  expect(answer.status).toBe(200);
  return (answer.body as ReadableStream<Uint8Array>).getReader();
}

async function readWhile(reader: Reader, condition: () => boolean): Promise<void> {
  while (condition()) {
    if ((await reader.read()).done) throw new Error("the response ended before the end of the text");
  }
}

let api: TestApi;
let model: ScriptedModel;
/** The seconds of speech that the model has sent. */
let spokenSeconds = 0;
/** Whether the model waits for the API tier to read. */
let waits = false;

beforeAll(async () => {
  const speak = speakOn((isWaiting) => {
    waits = isWaiting;
    if (!isWaiting) spokenSeconds += 1;
  });
  model = await startScriptedModel((call) => {
    spokenSeconds = 0;
    return speak(call);
  });
  api = await startTestApi(model.url);
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

/**
 * Waits until the API tier no longer reads from the model. The model, the API tier and the client share this
 * process. If a write of the model waits for a hundred turns of the event loop, the API tier does not read.
 */
async function modelWaits(mostSeconds: number): Promise<void> {
  await eventually("the model to wait for the API tier, or to exceed the limit", async () => {
    const before = spokenSeconds;
    for (let turn = 0; turn < 100; turn++) {
      if (before > mostSeconds) return true;
      if (!waits || spokenSeconds !== before) return false;
      await settle();
    }
    return true;
  });
}

/**
 * The second column is the number of times that the test lets the socket buffers fill. It is lower for
 * compressed audio, because the buffers hold a quarter of an hour of compressed audio.
 */
it.each([
  ["audio/wav", 2],
  ["audio/mpeg", 1],
  ["audio/ogg", 1],
  ["text/event-stream", 2],
])(
  "the API tier reads %s for a megabyte of text from the model no faster than the client reads",
  async (accept, times) => {
    const reader = await open(accept);
    let read = 0;
    for (let time = 0; time < times; time++) {
      await modelWaits(read + mostAheadSeconds);
      expect(spokenSeconds - read).toBeLessThan(mostAheadSeconds);
      const goal = spokenSeconds + 60;
      await readWhile(reader, () => spokenSeconds < goal);
      read = goal;
    }
    await reader.cancel();
    await model.calls.at(-1)?.aborted;
    held.exercised("flat memory", "pull");
  },
);
