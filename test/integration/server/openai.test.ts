import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { voices } from "../../../config/contract/voices.ts";
import { Failure } from "../../../server/errors.ts";
import { startTestApi, type TestApi } from "../../support/api-tier.ts";
import { joinChunks, parseEvents } from "../../support/events.ts";
import { decodeAudio, toneOf } from "../../support/ffmpeg.ts";
import { type ScriptedModel, speakTone, startScriptedModel } from "../../support/scripted-model.ts";

let api: TestApi;
let model: ScriptedModel;
const speak = speakTone(0.5, 16_000);

beforeAll(async () => {
  model = await startScriptedModel(speak);
  const route = [{ pool: "p", service: model.url, weight: 100, idle: false }];
  api = await startTestApi({ mist: route, arcana: route }, { voices });
});

afterAll(async () => {
  await api.stop();
  await model.close();
});

const body = { model: "tts-1", input: "Hello there.", voice: "nova" };
const post = (more: object, headers: Record<string, string> = {}) =>
  api.post({ ...body, ...more }, headers, "/v1/audio/speech");

describe("POST /v1/audio/speech", () => {
  it.each([
    [{}, "audio/mpeg", "mp3", []],
    [{ response_format: "opus" }, "audio/ogg", "opus", []],
    [{ response_format: "wav" }, "audio/wav", "pcm_s16le", []],
    [{ response_format: "pcm" }, "audio/pcm", "pcm_s16le", ["-f", "s16le", "-ar", "24000", "-ac", "1"]],
    [{ model: "mist", voice: "alan", response_format: "wav" }, "audio/wav", "pcm_s16le", []],
  ])("%o is streamed as %s", async (more, mediaType, codec, form) => {
    const answer = await post(more);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe(mediaType);
    expect(answer.headers.get("x-sampling-rate")).toBe("24000");
    const heard = await decodeAudio(Buffer.from(await answer.arrayBuffer()), form);
    expect(heard.codec).toBe(codec);
    expect(Math.abs(toneOf(heard) - 440)).toBeLessThan(2);
    const seconds = heard.samples.length / heard.rate;
    expect(seconds).toBeGreaterThanOrEqual(0.5);
    expect(seconds).toBeLessThan(codec === "mp3" ? 0.6 : 0.500_001);
  });

  it("asks the model for OpenAI's speed as its own length", async () => {
    await (await post({ speed: 2 })).arrayBuffer();
    expect(model.calls.at(-1)?.invocation).toMatchObject({
      modelId: "arcana",
      speaker: "astra",
      stretch: 0.5,
    });
  });

  it("streams events in OpenAI's shape", async () => {
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

  it("ends events in OpenAI's error when the model fails on the way", async () => {
    model.script = async (call) => {
      await call.head(24_000);
      await call.tone(2400, 24_000);
      await call.send({ kind: "error", failure: new Failure("model_failed", "The voice broke.") });
      call.close();
    };
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
  ])("answers %o %o with %i, as a problem and as OpenAI's error", async (more, headers, status, error) => {
    const answer = await post(more, headers as Record<string, string>);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    const problem = (await answer.json()) as { detail: string };
    expect(problem).toMatchObject({ status, error: { ...error, message: problem.detail } });
  });

  it("keeps OpenAI's error to its own route", async () => {
    expect(await (await api.post({}, {})).json()).not.toHaveProperty("error");
  });
});
