import { afterEach, describe, expect, it } from "vitest";
import { defaultLimits } from "../../../server/api/parts.ts";
import type { ApiEnvironment } from "../../../server/api/start.ts";
import { Failure } from "../../../server/errors.ts";
import { startTestApi } from "../../support/api-tier.ts";
import { joinChunks, parseEvents } from "../../support/events.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { type ScriptedModel, startScriptedModel } from "../../support/scripted-model.ts";

const open: { stop?: () => Promise<void>; close?: () => Promise<void> }[] = [];

afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await (thing.stop ?? thing.close)?.call(thing);
});

async function start(script: ScriptedModel["script"], environment: ApiEnvironment = {}) {
  const model = await startScriptedModel(script);
  open.push(model);
  const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
  const api = await startTestApi({ mist: route, arcana: route }, {}, environment);
  open.push(api);
  return { api, model };
}

const accept = { accept: "text/event-stream" };
const mist = { speaker: "abbie", text: "Hello there.", audioFormat: "pcm" };

const words = [
  { word: "Hello", start: 0.012_345, end: 0.25 },
  { word: "there.", start: 0.25, end: 0.3 },
];

/** Word times come when the engine knows them: some before, some after the audio that they tell of. */
const speakWords: ScriptedModel["script"] = async (call) => {
  await call.head(16_000);
  await call.send({ kind: "words", words: words.slice(0, 1) });
  for (let i = 0; i < 3; i++) await call.tone(1600, 16_000);
  await call.send({ kind: "words", words: words.slice(1) });
  await call.end(4800);
};

describe("an event stream", () => {
  it("is chunks, then exactly one timestamps, then done, and nothing after", async () => {
    const { api } = await start(speakWords);
    const answer = await api.post({ ...mist, samplingRate: 8000 }, accept);
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    const events = parseEvents(await answer.text());
    const names = events.map(({ name }) => name);
    expect(names.slice(-2)).toEqual(["timestamps", "done"]);
    expect(new Set(names.slice(0, -2))).toEqual(new Set(["chunk"]));
    for (const { name, data } of events) {
      if (name === "chunk") expect(data).toEqual({ data: expect.any(String) });
    }
    expect(joinChunks(events).length).toBe(2 * 2400);
  });

  it("has word times in seconds as the engine gave them, whatever the rate of the answer", async () => {
    const { api } = await start(speakWords);
    for (const samplingRate of [4000, 22_050, 44_100]) {
      const events = parseEvents(await (await api.post({ ...mist, samplingRate }, accept)).text());
      expect(events.at(-2)).toEqual({
        name: "timestamps",
        data: {
          word_timestamps: { words: ["Hello", "there."], start: [0.012_345, 0.25], end: [0.25, 0.3] },
        },
      });
      expect(events.at(-1)).toEqual({ name: "done", data: { done: true } });
    }
  });

  it("has a chunk and three empty lists when nothing was said", async () => {
    const { api } = await start(async (call) => {
      await call.head(16_000);
      await call.end(0);
    });
    const events = parseEvents(await (await api.post(mist, accept)).text());
    expect(events).toEqual([
      { name: "chunk", data: { data: "" } },
      { name: "timestamps", data: { word_timestamps: { words: [], start: [], end: [] } } },
      { name: "done", data: { done: true } },
    ]);
  });

  it("sends its first chunk at once, while the model still speaks, and comments only after it", async () => {
    const release = Promise.withResolvers<void>();
    const clock = new FakeClock();
    const { heartbeatMs } = defaultLimits;
    const { api } = await start(
      async (call) => {
        await clock.advance(2 * heartbeatMs);
        await call.head(16_000);
        await call.tone(1600, 16_000);
        await release.promise;
        await call.end(1600);
      },
      { clock },
    );
    const answer = await api.post({ ...mist, samplingRate: 16_000 }, accept);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const read = async () => Buffer.from((await reader.read()).value ?? []).toString();
    const first = await read();
    expect(first).toMatch(/^event: chunk\ndata: \{"data":"[^"]{4268}"\}\n\n$/);
    for (let silence = 0; silence < 2; silence++) {
      await clock.advance(heartbeatMs);
      expect(await read()).toBe(":\n\n");
    }
    release.resolve();
    let rest = "";
    for (let piece = await read(); piece !== ""; piece = await read()) rest += piece;
    expect(parseEvents(rest).map(({ name }) => name)).toEqual(["timestamps", "done"]);
  });

  it("that fails after the first chunk says why in an error event, and has no done", async () => {
    const { api } = await start(async (call) => {
      await call.head(16_000);
      await call.tone(1600, 16_000);
      await call.send({ kind: "error", failure: new Failure("model_failed", "The voice broke.") });
      call.close();
    });
    const answer = await api.post({ ...mist, samplingRate: 16_000 }, accept);
    expect(answer.status).toBe(200);
    const events = parseEvents(await answer.text());
    expect(events.map(({ name }) => name)).toEqual(["chunk", "error"]);
    expect(events.at(-1)?.data).toMatchObject({
      code: "model_failed",
      status: 502,
      detail: "The voice broke.",
      requestId: answer.headers.get("x-request-id"),
    });
    await eventually("the failure is counted", async () =>
      (await (await fetch(`${api.url}/metrics`)).text()).includes('error_message="model_failed"'),
    );
  });

  it("that fails before the first chunk is a problem document", async () => {
    const { api } = await start((call) => call.refuse(503, { code: "saturated", detail: "full" }));
    const answer = await api.post(mist, accept);
    expect(answer.status).toBe(503);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  it("stops the model when its reader hangs up", async () => {
    const { api, model } = await start(async (call) => {
      await call.head(16_000);
      await call.tone(1600, 16_000);
    });
    const answer = await api.post(mist, accept);
    await answer.body?.cancel();
    await model.calls[0]?.aborted;
  });
});
