import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { voices } from "../../../../config/contract/voices.ts";
import { startTestApi, type TestApi } from "../../../support/server/api-tier.ts";
import { joinChunks, parseEvents } from "../../../support/server/events.ts";
import {
  fail,
  type ScriptedModel,
  speakTone,
  startScriptedModel,
} from "../../../support/server/scripted-model.ts";

let api: TestApi;
let model: ScriptedModel;
const speak = speakTone(0.5, 16_000);

beforeAll(async () => {
  model = await startScriptedModel(speak);
  api = await startTestApi(model.url, { voices });
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

const body = { model: "tts-1", input: "Hello there.", voice: "nova" };
const post = (more: object, headers: Record<string, string> = {}) =>
  api.post({ ...body, ...more }, headers, { path: "/v1/audio/speech" });

describe("POST /v1/audio/speech", () => {
  it("converts OpenAI's speed to the stretch of the invocation", async () => {
    await (await post({ speed: 2 })).arrayBuffer();
    expect(model.calls.at(-1)?.invocation).toMatchObject({
      modelId: "arcana",
      speaker: "astra",
      stretch: 0.5,
    });
  });

  it("streams the events of the OpenAI API", async () => {
    const answer = await post({ stream_format: "sse", response_format: "pcm" });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    const events = parseEvents(await answer.text());
    for (const { name, data } of events) expect(data).toMatchObject({ type: name });
    expect(events.at(-1)?.data).toEqual({
      type: "speech.audio.done",
      usage: { input_tokens: 12, output_tokens: 0, total_tokens: 12 },
    });
    expect(joinChunks(events, "speech.audio.delta", "audio").length).toBe(24_000);
  });

  it("ends its events with OpenAI's error when the model fails during the speech", async () => {
    model.script = fail();
    const events = parseEvents(await (await post({ stream_format: "sse", response_format: "pcm" })).text());
    model.script = speak;
    expect(events.map(({ name }) => name)).toEqual(["speech.audio.delta", "error"]);
    expect(events.at(-1)?.data).toEqual({
      type: "error",
      error: { message: "The voice broke.", type: "server_error", code: "model_failed", param: null },
    });
  });

  it.each([
    [{ response_format: "flac" }, {}, 400, { type: "invalid_request_error", param: "response_format" }],
    [{}, { authorization: "Bearer svc_nobody" }, 401, { type: "authentication_error", code: "unauthorized" }],
    [{}, { "content-type": "text/plain" }, 415, { type: "invalid_request_error" }],
  ])("rejects %o with headers %o with %i and OpenAI's error", async (more, headers, status, error) => {
    const answer = await post(more, headers as Record<string, string>);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    const problem = (await answer.json()) as { detail: string };
    expect(problem).toMatchObject({ status, error: { ...error, message: problem.detail } });
  });

  it("has OpenAI's error only on this route", async () => {
    expect(await (await api.post({}, {})).json()).not.toHaveProperty("error");
  });
});
