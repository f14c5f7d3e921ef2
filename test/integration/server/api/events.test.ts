import { afterEach, describe, expect, it } from "vitest";
import { defaultLimits } from "../../../../server/api/request/limits.ts";
import type { ApiEnvironment } from "../../../../server/start/api-tier.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { startTestApi } from "../../../support/server/api-tier.ts";
import { parseEvents } from "../../../support/server/events.ts";
import { fail, type ScriptedModel, startScriptedModel } from "../../../support/server/scripted-model.ts";

const open: { stop?: () => Promise<void>; close?: () => Promise<void> }[] = [];

afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await (thing.stop ?? thing.close)?.call(thing);
});

async function start(script: ScriptedModel["script"], environment: ApiEnvironment = {}) {
  const model = await startScriptedModel(script);
  open.push(model);
  const api = await startTestApi(model.url, {}, environment);
  open.push(api);
  return { api, model };
}

const accept = { accept: "text/event-stream" };
const mist = { speaker: "abbie", text: "Hello there.", audioFormat: "pcm" };

describe("an event stream", () => {
  it("has an empty chunk and empty timestamps when the audio is empty", async () => {
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

  it("sends its first chunk while the model still works, and comments only after the first chunk", async () => {
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
    for (let comment = 0; comment < 2; comment++) {
      await clock.advance(heartbeatMs);
      expect(await read()).toBe(":\n\n");
    }
    release.resolve();
    let rest = "";
    for (let piece = await read(); piece !== ""; piece = await read()) rest += piece;
    expect(parseEvents(rest).map(({ name }) => name)).toEqual(["timestamps", "done"]);
  });

  it("ends with an error event and without done if the model fails after the first chunk", async () => {
    const { api } = await start(fail({ rate: 16_000 }));
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
    await eventually("the failure in the metrics", async () =>
      (await (await fetch(`${api.url}/metrics`)).text()).includes('error_message="model_failed"'),
    );
  });

  it("is replaced by a problem document if the model fails before the first chunk", async () => {
    const { api } = await start((call) => call.refuse(503, { code: "saturated", detail: "full" }));
    const answer = await api.post(mist, accept);
    expect(answer.status).toBe(503);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  it("stops the model when its client disconnects", async () => {
    const { api, model } = await start(async (call) => {
      await call.head(16_000);
      await call.tone(1600, 16_000);
    });
    const answer = await api.post(mist, accept);
    await answer.body?.cancel();
    await model.calls[0]?.aborted;
  });
});
